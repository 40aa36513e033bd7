// Rows that are fetched by the page as they come into sight.

/** Tells its watchers that rows have come. */
class Source {
  constructor(key) {
    this.key = key;
    this.watchers = [];
  }

  watch(watcher) {
    this.watchers.push(watcher);
  }

  changed() {
    for (const watcher of this.watchers) watcher();
  }
}

export class PagedSource extends Source {
  /** `load(offset, limit)` answers {total, rows}; `key(row)` says which row it is. */
  constructor({ load, size = 100, key = (row) => row.id }) {
    super(key);
    this.load = load;
    this.size = size;
    this.pages = new Map();
    this.pending = new Map();
    this.total = 0;
    this.age = 0;
    this.onError = () => {};
  }

  get(index) {
    return this.pages.get(Math.floor(index / this.size))?.[index % this.size];
  }

  /** Where a row is, among those that are here. */
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
    const age = this.age;
    const asked = this.load(page * this.size, this.size)
      .then(({ total, rows }) => {
        if (age !== this.age) return;
        this.pages.set(page, rows);
        this.total = total;
        this.changed();
      })
      .catch((error) => {
        if (age === this.age && error.name !== "AbortError") this.onError(error);
      })
      .finally(() => {
        if (age === this.age) this.pending.delete(page);
      });
    this.pending.set(page, asked);
    return asked;
  }

  /** Read again what is in sight; old rows stay until the new ones are here, pages out of sight are forgotten. */
  refresh(first = 0, last = 0) {
    this.age += 1;
    this.pending.clear();
    const from = Math.floor(Math.max(0, first) / this.size);
    const to = Math.floor(Math.max(first, last) / this.size);
    for (const page of [...this.pages.keys()]) if (page < from || page > to) this.pages.delete(page);
    const asked = [];
    for (let page = from; page <= to; page += 1) asked.push(this.fetchPage(page));
    return Promise.all(asked);
  }

  /** Rows that came with something else. */
  give(page, rows, total) {
    this.pages.set(page, rows);
    this.total = total;
  }

  /** Start over: other rows altogether. */
  reset() {
    this.pages.clear();
    this.total = 0;
    return this.refresh();
  }
}

/** Rows that are all here already. */
export class ArraySource extends Source {
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
    this.changed();
  }
}
