// The scale of the timeline: which calls are in view, and where they are on the screen.

// Chosen: fewer calls than this are not worth a further zoom.
const MIN_CALLS = 8;

/** Return round numbers that divide a range into about `wanted` steps. */
export function ticks(most, wanted = 4) {
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power;
  const places = [];
  for (let at = 0; at <= most + 1e-9; at += step) places.push(at);
  return places;
}

/** The calls in view, as a half-open range that stays inside what there is and follows the newest. */
export class CallRange {
  constructor() {
    this.total = 0;
    this.from = 0;
    this.to = 0;
  }

  get size() {
    return Math.max(1, this.to - this.from);
  }
  get isWhole() {
    return this.from === 0 && this.to === this.total;
  }

  grow(total) {
    const wasWhole = this.isWhole;
    const wasAtEnd = this.to === this.total;
    const size = this.to - this.from;
    this.total = total;
    if (wasWhole) this.set(0, total);
    else if (wasAtEnd) this.set(total - size, total);
    else this.set(this.from, this.to);
  }

  set(from, to) {
    const size = Math.min(this.total, Math.max(Math.min(MIN_CALLS, this.total), Math.round(to - from)));
    this.from = Math.max(0, Math.min(this.total - size, Math.round(from)));
    this.to = this.from + size;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const size = this.size * factor;
    const share = (around - this.from) / this.size;
    this.set(around - share * size, around + (1 - share) * size);
  }

  include(index) {
    if (index < this.from) this.set(index, index + this.size);
    else if (index >= this.to) this.set(index + 1 - this.size, index + 1);
  }
}

/** Return the functions from calls and tokens to places on the screen, and back. */
export function frame({ width, height, margin, range, most }) {
  const inner = {
    width: Math.max(10, width - margin.left - margin.right),
    height: height - margin.top - margin.bottom,
  };
  const slot = inner.width / range.size;
  return {
    width,
    height,
    margin,
    inner,
    slot,
    x: (index) => margin.left + (index - range.from) * slot,
    y: (tokens) => margin.top + inner.height * (1 - tokens / most),
    indexAt: (px) => Math.max(range.from, Math.min(range.to - 1, range.from + Math.floor((px - margin.left) / slot))),
  };
}
