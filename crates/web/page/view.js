// What volumes say, as a page. Everything that comes from elsewhere becomes text, never markup.

import { bytes, lines, micros } from './chart.js';

// An element: its name with classes (`p.note.bad`), attributes or properties, children.
export function h(name, given, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(given || {})) {
    if (key === 'act' || key === 'value') node[key] = value;
    else if (value === true) node.setAttribute(key, '');
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const keyOf = (node) => (node.getAttribute ? node.getAttribute('data-key') : null);
const isLike = (old, fresh) => old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);

// Makes `old` look like `fresh`, and leaves what is the same as it is: focus, an open fold, a screen reader's place.
export function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  old.act = fresh.act;
  for (const { name } of [...old.attributes]) if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  fill(old, [...fresh.childNodes]);
}

export function fill(parent, children) {
  children.forEach((fresh, place) => {
    const here = parent.childNodes[place];
    const key = keyOf(fresh);
    const found = key === null ? here : [...parent.childNodes].slice(place).find((node) => keyOf(node) === key);
    if (found && isLike(found, fresh)) {
      if (found !== here) parent.insertBefore(found, here);
      morph(found, fresh);
    } else if (here && keyOf(here) === null && key === null) {
      here.replaceWith(fresh);
    } else {
      parent.insertBefore(fresh, here || null);
    }
  });
  while (parent.childNodes.length > children.length) parent.lastChild.remove();
}

// A text with commands in it, between backticks.
export function words(text) {
  return String(text).split('`').map((part, place) => (place % 2 ? h('code', null, part) : part));
}

const GREY = ['down'];
const MARK = { good: '✓', warn: '!', bad: '✕', still: '–' };
const badge = (state, kind) => h(`span.badge.${kind}`, null, `${MARK[kind]} ${state.replaceAll('_', ' ')}`);

const clock = (ms) => new Date(ms).toLocaleTimeString();

// What is wrong with a volume, each with what to do: as the volume's server says it, in its order.
export function troubles(volume) {
  const name = volume.name;
  if (volume.silent_since_ms) {
    return [{ name, severity: 'critical', text: `has not answered since ${clock(volume.silent_since_ms)}`, is: ' ', next: volume.next }];
  }
  if (!volume.problems && !GREY.includes(volume.state)) {
    return [{ name, severity: 'critical', text: `${volume.state}${volume.why ? `: ${volume.why}` : ''}`, is: ' is ', next: volume.next }];
  }
  return (volume.problems || []).map(({ severity, what, next }) => ({ name, severity, text: what, is: what.startsWith(volume.state) ? ' is ' : ': ', next }));
}

const WEIGHT = ['critical', 'warning', 'info'];

// One sentence for all of them, the worst first, and what to do. What is said of several volumes is said once.
export function verdict(volumes, error) {
  const found = [];
  if (error) found.push({ names: [], severity: 'critical', text: error });
  for (const { name, severity, text, is, next } of volumes.flatMap(troubles)) {
    const same = found.find((one) => one.text === text && one.severity === severity && !one.next && !next);
    if (same) same.names.push(name);
    else found.push({ names: [name], severity, text, is, next });
  }
  found.sort((one, other) => WEIGHT.indexOf(one.severity) - WEIGHT.indexOf(other.severity));
  const up = volumes.filter((volume) => !GREY.includes(volume.state)).length;
  const count = (number) => `${number} ${number === 1 ? 'volume' : 'volumes'}`;
  if (found.length === 0) {
    const text = up ? `All is well: ${count(up)} up.` : 'No volume is up.';
    return { tone: up ? 'good' : 'still', nodes: [h('h1', null, text)] };
  }
  const said = ({ names, text, is }) => words(names.length ? names.join(', ') + is + text : text);
  const todo = ({ next }, kind) => (next ? h(kind, null, 'Next: ', words(next)) : null);
  const tone = found[0].severity === 'critical' ? 'bad' : 'warn';
  if (found.length === 1) return { tone, nodes: [h('h1', null, said(found[0])), todo(found[0], 'p')].filter(Boolean) };
  return { tone, nodes: [h('h1', null, `${found.length} things need a look.`), h('ul', null, found.map((one) => h('li', null, said(one), todo(one, 'p.next'))))] };
}

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function pass(array) {
  const job = array.job;
  if (!job) return array.requested ? h('p.note', null, `${array.requested} waits for its turn`) : null;
  const share = job.total_bytes ? (100 * job.done_bytes) / job.total_bytes : 0;
  const [best, worst] = job.eta_seconds || [];
  const left = best === undefined ? '' : best === worst ? `, ${duration(best)} left` : `, ${duration(best)} to ${duration(worst)} left`;
  return h('div.pass', { 'data-key': array.called },
    h('div.row', null, h('b', null, `${job.kind}${job.member ? ` of ${job.member}` : ''}`), h('span', null, `${share.toFixed(1)} %`)),
    h('progress', { max: 100, value: share, 'aria-label': `${job.kind} of ${array.called}` }),
    h('p.small.soft', null, `${bytes(job.done_bytes)} of ${bytes(job.total_bytes)}, ${bytes(job.bytes_per_second)}/s${left}`));
}

// Leaves of the stack, and what arrays say of them.
function memberRows(volume) {
  const rows = new Map((volume.members || []).map((leaf) => [leaf.member, { name: leaf.member, leaf }]));
  for (const array of volume.arrays || []) {
    for (const one of array.members) rows.set(one.member, { ...rows.get(one.member), name: one.member, one, array });
    for (const left of array.left_out || []) {
      rows.set(left.member, { ...rows.get(left.member), name: left.member, one: { state: 'left out', remark: left.by_bitmap ? 'can come back by the bitmap' : 'takes no part' }, array });
    }
  }
  return [...rows.values()];
}

// The connections of a remote member; a long wait is a warning of the volume.
function connections(remote) {
  const lost = remote.reconnects ? `, lost ${remote.reconnects} times` : '';
  return `${remote.connections} of ${remote.connections_wanted} connections, round trip ${(remote.round_trip_us / 1000).toFixed(2)} ms${lost}`;
}

const ROW_TONE = { in_sync: 'good', recovering: 'warn', spare: 'still', faulty: 'bad', 'left out': 'warn' };

function member(volume, row, history, actions) {
  const { leaf, one, array } = row;
  const rate = history.now.members.get(row.name);
  const state = one ? one.state : leaf && (leaf.gone || leaf.lost) ? 'failing' : 'in use';
  const remarks = [one && one.replacement && 'replacement', one && one.write_mostly && 'write-mostly', one && one.remark, leaf && leaf.slow && `slow: ${leaf.slow}`,
    leaf && leaf.remote && connections(leaf.remote), leaf && leaf.gone, one && one.bad_ranges > 0 && `${one.bad_ranges} bad ranges`, one && one.corrected_reads > 0 && `${one.corrected_reads} reads put right`].filter(Boolean);
  const errors = leaf ? leaf.failures : 0;
  const offers = (volume.offers || []).filter((offer) => offer.member === row.name);
  const buttons = offers.map((offer) => h('button', { type: 'button', 'data-key': offer.label, 'aria-label': `${offer.label} ${row.name}`, act: () => actions.offer(volume.name, offer) }, offer.label));
  if (one && one.state === 'in_sync' && array.uuid && volume.state !== 'failed') {
    buttons.push(h('button', { type: 'button', 'data-key': 'replace', 'aria-label': `Replace ${row.name}`, act: () => actions.replace(volume.name, row.name) }, 'Replace …'));
  }
  const cell = (head, text) => h('td.n', { 'data-head': head }, text);
  return h('tr', { 'data-key': row.name },
    h('td.name', null, row.name, remarks.length ? h('small', null, remarks.join('; ')) : null),
    h('td.state', null, badge(state, ROW_TONE[state] || (state === 'failing' ? 'bad' : 'still'))),
    cell('role', one && one.role !== null && one.role !== undefined ? String(one.role) : '–'),
    cell('errors', errors ? h('b', { title: leaf.last_failure }, String(errors)) : '0'),
    cell('read', rate ? `${bytes(rate.read)}/s` : '–'),
    cell('written', rate ? `${bytes(rate.write)}/s` : '–'),
    cell('latency', micros(rate ? rate.latency : null)),
    h('td.ops-cell', null, h('div.row', null, buttons)));
}

function memberTable(volume, history, actions) {
  const rows = memberRows(volume);
  if (!rows.length) return [];
  const heads = ['member', 'state', 'role', 'errors', 'read', 'written', 'latency'];
  return [h('h3', null, 'Members'), h('table', null,
    h('thead', null, h('tr', null, heads.map((head, place) => h(place > 1 ? 'th.n' : 'th', { scope: 'col' }, head)), h('th', { scope: 'col' }, h('span.sr', null, 'operations')))),
    h('tbody', null, rows.map((row) => member(volume, row, history, actions))))];
}

function caches(volume) {
  const each = (cache) => {
    const share = cache.reads ? `${((100 * cache.cache_hits) / cache.reads).toFixed(1)} % of ${cache.reads} reads hit` : 'no reads yet';
    const back = cache.write_back;
    const dirty = back ? `, ${bytes(back.dirty_bytes)} not written yet` : '';
    const aside = cache.aside && cache.aside.standing && cache.aside.standing !== 'serving' ? `, ${cache.aside.standing}` : '';
    return h('p', null, h('code', null, cache.cache), ` ${cache.mode}, ${cache.policy}: ${bytes(cache.used_bytes)} of ${bytes(cache.size_bytes)}; ${share}${dirty}${aside}`);
  };
  return (volume.caches || []).length ? [h('h3', null, 'Cache'), volume.caches.map(each)] : [];
}

// Below which half of the requests of clients are, and 99 of 100, to a power of two, since the volume is up.
export function latency(volume) {
  const of = (kind) => {
    const sum = [];
    for (const way of volume.exports || []) way.io[kind].buckets.forEach((number, place) => { sum[place] = (sum[place] || 0) + number; });
    const all = sum.reduce((a, b) => a + b, 0);
    const below = (share) => {
      let seen = 0;
      return 2 ** sum.findIndex((number) => (seen += number) >= Math.ceil(share * all) && number > 0);
    };
    return all ? `${kind} p50 <${micros(below(0.5))}, p99 <${micros(below(0.99))}` : null;
  };
  return ['reads', 'writes', 'flushes'].map(of).filter(Boolean).join('; ');
}

function facts(volume) {
  const rows = [['stack', h('code', null, volume.stack)]];
  for (const array of volume.arrays) {
    rows.push(['array', [array.level, array.layout, array.chunk_bytes ? `chunks of ${bytes(array.chunk_bytes)}` : null, `${array.in_sync.filter(Boolean).length} of ${array.raid_disks} in sync`, array.state].filter(Boolean).join(', ')]);
    if (array.last_scrub) rows.push(['last scrub', `${array.last_scrub.kind}, ${new Date(array.last_scrub.ended_ms).toLocaleString()}: ${array.last_scrub.mismatch_bytes ? `${bytes(array.last_scrub.mismatch_bytes)} differed` : 'all agreed'}`]);
  }
  for (const ram of volume.rams || []) rows.push(['RAM', `${bytes(ram.used_bytes)} of ${bytes(ram.size_bytes)} written`]);
  for (const way of volume.exports) {
    if (way.uris.length) rows.push([way.kind.toUpperCase(), [way.uris.join(', '), `, ${way.connections} connected`]]);
    else rows.push(['device', h('code', null, way.address)]);
  }
  const waited = latency(volume);
  if (waited) rows.push(['latency', waited]);
  if (volume.device.locked) rows.push(['locked', 'writes are refused']);
  return h('dl.facts', null, rows.map(([name, value]) => [h('dt', null, name), h('dd', null, value)]));
}

function log(volume) {
  const all = volume.arrays.flatMap((array) => array.log.map(([at, text]) => ({ at, text }))).sort((a, b) => b.at - a.at);
  if (!all.length) return null;
  return h('details', { 'data-key': 'log' }, h('summary', null, `What happened (${all.length})`),
    h('ul.log', { tabindex: 0, 'aria-label': `log of ${volume.name}` }, all.slice(0, 100).map(({ at, text }) => h('li', null, h('time', null, new Date(at * 1000).toLocaleString()), h('span', null, text)))));
}

function operations(volume, actions) {
  const button = (label, act, key = label) => h('button', { type: 'button', 'data-key': key, 'aria-label': `${label.replace(' …', '')}: ${volume.name}`, act }, label);
  const own = (volume.offers || []).filter((offer) => offer.member === null).map((offer) => button(offer.label, () => actions.offer(volume.name, offer)));
  const redundant = (volume.arrays || []).some((array) => array.uuid && !['linear', 'raid0'].includes(array.level));
  const mirrors = (volume.arrays || []).filter((array) => array.uuid && array.level === 'raid1');
  const hasCache = (volume.caches || []).length > 0;
  const isRam = (volume.rams || []).length === 1;
  const seldom = [
    redundant ? button('Scrub for a time …', () => actions.scrubFor(volume.name)) : null,
    redundant ? button('Speed of passes …', () => actions.speed(volume.name)) : null,
    mirrors.map((array) => [
      button(`Copies of ${array.called} …`, () => actions.copies(volume.name, array.called, array.raid_disks)),
      button(`Use all of the members of ${array.called} …`, () => actions.grow(volume.name, array.called)),
    ]),
    hasCache ? [button('Resize the cache …', () => actions.cacheSize(volume.name)), button('Writes of the cache …', () => actions.cacheMode(volume.name))]
      : button('Attach a cache …', () => actions.cache(volume.name)),
    isRam ? [button('Resize …', () => actions.resize(volume.name)), button('Save …', () => actions.save(volume.name)), button('Restore …', () => actions.restore(volume.name))] : null,
  ].flat(9).filter(Boolean);
  return h('div.row.ops', { 'data-key': 'ops' },
    redundant && !volume.device.read_only ? button('Add a member …', () => actions.add(volume.name)) : null,
    own,
    button('Bring down', () => actions.down(volume.name)),
    h('details.seldom', { 'data-key': 'seldom' }, h('summary', { 'aria-label': `More: ${volume.name}` }, 'More'), h('div.row', null, seldom)));
}

// How bad it is, from 0: the place among the others. What is down on purpose comes last.
export function rank(volume) {
  const worst = Math.min(...troubles(volume).map(({ severity }) => WEIGHT.indexOf(severity)));
  if (worst < WEIGHT.length) return worst;
  return GREY.includes(volume.state) ? WEIGHT.length + 1 : WEIGHT.length;
}

const TONES = ['bad', 'warn', 'good', 'good', 'still'];

// What a volume is, in a few words; its stack has the whole.
function kind(volume) {
  const arrays = volume.arrays.map((array) => `${array.level} of ${array.raid_disks}`);
  const below = arrays.join(', ') || (volume.rams.length ? 'RAM' : volume.stack.split('(')[0]);
  return volume.caches.length && below !== 'cache' ? `${below}, cached` : below;
}

// What happens to it at this moment.
function doing(volume, history) {
  const job = volume.arrays.map((array) => array.job).find(Boolean);
  const { read, write } = history.now;
  const rates = [read >= 1 ? `${bytes(read)}/s read` : null, write >= 1 ? `${bytes(write)}/s written` : null];
  const pass = job ? `${job.kind} ${((100 * job.done_bytes) / (job.total_bytes || 1)).toFixed(1)} %` : null;
  return [pass, ...rates].filter(Boolean).join(', ') || 'idle';
}

// A volume: one line, which opens. What is wrong with it stands above all volumes, in the verdict.
export function card(volume, history, actions, isOpen) {
  const title = [h('h2', { id: `v-${volume.name}` }, volume.name), badge(volume.state, TONES[rank(volume)])];
  const given = { 'data-key': volume.name, 'aria-labelledby': `v-${volume.name}` };
  if (!volume.device) {
    const brings = h('button.main', { type: 'button', 'aria-label': `Bring up ${volume.name}`, act: () => actions.up(volume.name) }, 'Bring up');
    const ends = (label) => h('button', { type: 'button', 'aria-label': `${label}: ${volume.name}`, act: () => actions.down(volume.name, true) }, label);
    const renames = h('button', { type: 'button', 'aria-label': `Rename: ${volume.name}`, act: () => actions.rename(volume.name) }, 'Rename …');
    const offered = { down: [brings, renames], gone: [brings, ends('Remove what it left')] }[volume.state] || [ends('Bring down')];
    return h('article.card', given, h('div.head', null, title, h('div.row.end', { 'data-key': `ops-${volume.state}` }, offered)));
  }
  const charts = [lines('Clients', [{ label: 'read', values: history.reads }, { label: 'written', values: history.writes }], (rate) => `${bytes(rate)}/s`, 1024)];
  if ([...history.latency.values()].some((values) => values.some((one) => one !== null))) charts.push(lines('Latency of members', [...history.latency].slice(0, 8).map(([label, values]) => ({ label: label.split('/').pop(), values })), micros, 10));
  const at = volume.exports.map((way) => way.uris[0] || way.address).find(Boolean) || '';
  const head = h('summary.head', { 'aria-label': `Details: ${volume.name}` }, title, h('span.what', null, kind(volume)), h('span.at', null, at),
    h('span.doing', null, doing(volume, history)), h('span.size', null, bytes(volume.device.size_bytes)));
  return h('article.card', given, h('details.whole', { open: isOpen }, head,
    volume.arrays.map(pass), facts(volume), memberTable(volume, history, actions), caches(volume),
    h('div.charts', { 'data-key': 'charts' }, charts), log(volume), operations(volume, actions)));
}
