// The rows of a list: fetched page by page as they come into view, or all here already.

/** Rows that tell their listeners when they change. */
class Rows {
  constructor(key) {
    this.key = key;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  notify() {
    for (const listener of this.listeners) listener();
  }
}

export class PagedRows extends Rows {
  /** `load(offset, limit)` returns {total, rows}; `key(row)` identifies a row. */
  constructor({ load, size = 100, key = (row) => row.id }) {
    super(key);
    this.load = load;
    this.size = size;
    this.pages = new Map();
    this.pending = new Map();
    this.total = 0;
    this.generation = 0;
    this.onError = () => {};
  }

  get(index) {
    return this.pages.get(Math.floor(index / this.size))?.[index % this.size];
  }

  /** Return the index of a row among those that are here, or -1. */
  find(key) {
    for (const [number, rows] of this.pages) {
      const at = rows.findIndex((row) => this.key(row) === key);
      if (at >= 0) return number * this.size + at;
    }
    return -1;
  }

  ensure(first, last) {
    for (let page = Math.floor(first / this.size); page <= Math.floor(Math.max(first, last) / this.size); page += 1) {
      if (!this.pages.has(page)) this.fetchPage(page);
    }
  }

  fetchPage(page) {
    if (this.pending.has(page)) return this.pending.get(page);
    const generation = this.generation;
    const request = this.load(page * this.size, this.size)
      .then(({ total, rows }) => {
        if (generation !== this.generation) return;
        this.pages.set(page, rows);
        this.total = total;
        this.notify();
      })
      .catch((error) => {
        if (generation === this.generation && error.name !== "AbortError") this.onError(error);
      })
      .finally(() => {
        if (generation === this.generation) this.pending.delete(page);
      });
    this.pending.set(page, request);
    return request;
  }

  /** Read again what is in view; old rows stay until the new ones are here, pages out of view are dropped. */
  refresh(first = 0, last = 0) {
    this.generation += 1;
    this.pending.clear();
    const from = Math.floor(Math.max(0, first) / this.size);
    const to = Math.floor(Math.max(first, last) / this.size);
    for (const page of [...this.pages.keys()]) if (page < from || page > to) this.pages.delete(page);
    const requests = [];
    for (let page = from; page <= to; page += 1) requests.push(this.fetchPage(page));
    return Promise.all(requests);
  }

  /** Set a page that was fetched with something else. */
  setPage(page, rows, total) {
    this.pages.set(page, rows);
    this.total = total;
  }

  /** Start over with other rows. */
  reset() {
    this.pages.clear();
    this.total = 0;
    return this.refresh();
  }
}

/** Rows that are all here already. */
export class ArrayRows extends Rows {
  constructor(key = (row) => row.id) {
    super(key);
    this.rows = [];
  }

  get total() {
    return this.rows.length;
  }
  get(index) {
    return this.rows[index];
  }
  find(key) {
    return this.rows.findIndex((row) => this.key(row) === key);
  }
  ensure() {}

  set(rows) {
    this.rows = rows;
    this.notify();
  }
}
