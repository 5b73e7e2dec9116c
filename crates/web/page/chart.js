// What is measured over the last minute, and how it is drawn: lines in SVG, by a few lines of code.

const KEPT = 120;
const NS = 'http://www.w3.org/2000/svg';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${UNITS[unit]}`;
}

export function micros(us) {
  if (us === null) return '–';
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

// Counters of a volume become rates: each look is held against the one before.
export class History {
  constructor() {
    this.before = null;
    this.reads = [];
    this.writes = [];
    this.latency = new Map();
    this.now = { read: 0, write: 0, members: new Map() };
  }

  take(volume, at) {
    const next = { at, ...totals(volume), members: new Map() };
    for (const one of volume.members || []) next.members.set(one.member, one.io || null);
    const before = this.before;
    const seconds = before ? (at - before.at) / 1000 : 0;
    if (before && seconds < 0.3) return;
    this.before = next;
    // Counters that fell are of another process.
    if (!before || next.read < before.read || next.written < before.written) return;
    const push = (series, value) => {
      series.push(value);
      if (series.length > KEPT) series.shift();
    };
    const now = {
      read: (next.read - before.read) / seconds, write: (next.written - before.written) / seconds, members: new Map(),
    };
    push(this.reads, now.read);
    push(this.writes, now.write);
    for (const name of [...this.latency.keys()]) if (!next.members.has(name)) this.latency.delete(name);
    for (const [name, io] of next.members) {
      const rate = ioRate(before.members.get(name), io, seconds);
      now.members.set(name, rate);
      if (!this.latency.has(name)) this.latency.set(name, []);
      push(this.latency.get(name), rate ? rate.latency : null);
    }
    this.now = now;
  }
}

const requests = (io) => io.reads.count + io.writes.count;

// What a member did between two looks; nothing if it is not counted.
function ioRate(before, io, seconds) {
  if (!before || !io) return null;
  const count = requests(io) - requests(before);
  const took = io.reads.sum_us + io.writes.sum_us - before.reads.sum_us - before.writes.sum_us;
  if (count < 0 || took < 0) return null;
  return {
    read: Math.max(0, io.read_bytes - before.read_bytes) / seconds,
    write: Math.max(0, io.written_bytes - before.written_bytes) / seconds,
    latency: count > 0 ? took / count : null,
  };
}

// Bytes that clients read and wrote, by whichever way they came.
function totals(volume) {
  const sum = (of) => (volume.exports || []).reduce((all, way) => all + way[of], 0);
  return { read: sum('read_bytes'), written: sum('written_bytes') };
}

const HEIGHT = 120;
const LEFT = 62;

function svg(name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// Up to where a scale goes: 1, 2 or 5 times a power of ten (of two, for bytes).
function ceiling(most, base) {
  if (!(most > 0)) return base === 1024 ? 1024 : 100;
  let step = 1;
  if (base === 1024) {
    while (step < most) step *= 2;
    return step;
  }
  step = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((times) => times * step).find((top) => top >= most);
}

// Lines over the last minute. `series`: a label and its values, oldest first; `null` is a gap.
export function lines(title, series, format, base) {
  // As wide as it is shown, so that its text is as large as other text.
  const WIDTH = Math.max(260, Math.min(440, window.innerWidth - 54));
  const top = ceiling(Math.max(0, ...series.flatMap(({ values }) => values.filter((one) => one !== null))), base);
  const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title });
  const y = (value) => 8 + (HEIGHT - 26) * (1 - value / top);
  for (const share of [0, 0.5, 1]) {
    const at = y(top * share);
    picture.append(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - 2, y1: at, y2: at }));
    picture.append(svg('text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, share === 0 ? '0' : format(top * share)));
  }
  picture.append(svg('text', { x: LEFT, y: HEIGHT - 4 }, '1 min ago'));
  picture.append(svg('text', { x: WIDTH - 2, y: HEIGHT - 4, 'text-anchor': 'end' }, 'now'));
  const caption = document.createElement('figcaption');
  caption.append(Object.assign(document.createElement('b'), { textContent: title }));
  series.forEach(({ label, values }, index) => {
    let path = '';
    let gap = true;
    values.forEach((value, place) => {
      if (value === null) {
        gap = true;
        return;
      }
      const x = WIDTH - 2 - ((values.length - 1 - place) * (WIDTH - 2 - LEFT)) / (KEPT - 1);
      path += `${gap ? 'M' : 'L'}${x.toFixed(1)} ${y(value).toFixed(1)}${gap ? 'h.01' : ''}`;
      gap = false;
    });
    picture.append(svg('path', { class: `k${index % 8}`, d: path || 'M0 0' }));
    const key = document.createElement('span');
    key.className = `key k${index % 8}`;
    const last = values.findLast((one) => one !== null);
    key.textContent = `${label} ${last === undefined ? '–' : format(last)}`;
    caption.append(key);
  });
  const figure = document.createElement('figure');
  figure.append(caption, picture);
  return figure;
}
