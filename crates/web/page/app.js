// The page itself: the token, the stream of changes, and operations, each planned before it is done.

import { caseCard } from './cases.js';
import { History } from './chart.js';
import { card, fill, h, rank, verdict, words } from './view.js';

const $ = (id) => document.getElementById(id);
const TOKEN = 'braid-token';

let state = { volumes: {}, error: null };
const histories = new Map();
const ranks = new Map();

// The token comes behind the # of the address, which no server is sent; it is kept for this tab.
const given = /^#token=([\w-]+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem(TOKEN, given[1]);
  history.replaceState(null, '', location.pathname);
}

class Refused extends Error {
  constructor(status, { why, next }) {
    super(why);
    this.status = status;
    this.next = next;
  }
}

async function ask(path, body) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const answer = await fetch(`/api/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST', headers, body: body === undefined ? undefined : JSON.stringify(body),
    credentials: 'omit', cache: 'no-store',
  });
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => ({ why: `the server answered ${answer.status}` })));
}

const post = async (path, body) => (await ask(path, body)).json();

// --- what changes -------------------------------------------------------------------------------

function patch(target, change) {
  if (change === null || typeof change !== 'object' || Array.isArray(change)) return change;
  const result = target !== null && typeof target === 'object' && !Array.isArray(target) ? target : {};
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete result[key];
    else result[key] = patch(result[key], value);
  }
  return result;
}

function hear(kind, data) {
  state = kind === 'state' ? data : patch(state, data);
  const now = performance.now();
  for (const [name, volume] of Object.entries(state.volumes)) {
    if (!histories.has(name)) histories.set(name, new History());
    if (volume.device) histories.get(name).take(volume, now);
  }
  for (const kept of [histories, ranks]) for (const name of [...kept.keys()]) if (!(name in state.volumes)) kept.delete(name);
  draw();
}

async function follow() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 10000)) {
    try {
      const answer = await ask('/events');
      link('live');
      wait = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split('\n\n');
        text = events.pop();
        for (const event of events) {
          const found = /^(?:id: .*\n)?event: (state|patch)\ndata: (.*)$/.exec(event);
          if (found) hear(found[1], JSON.parse(found[2]));
        }
      }
    } catch (error) {
      if (error.status === 401) return locked(error);
      if (error.status) link(error.message, true);
    }
    link('connection lost, trying again', true);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function link(text, lost = false) {
  if ($('link').textContent !== text) $('link').textContent = text;
  $('link').classList.toggle('lost', lost);
}

function locked(error) {
  link('not open', true);
  fill($('verdict'), [h('h1', null, 'This page needs its token.'), h('p', null, words(sessionStorage.getItem(TOKEN) ? error.message : 'Open the address that `braid web` printed, or put the token here.'))]);
  $('enter').hidden = false;
  $('token').focus();
}

$('enter').querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, $('token').value.trim());
  $('enter').hidden = true;
  $('token').value = '';
  start();
});

function draw() {
  const volumes = Object.values(state.volumes).sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  const said = verdict(volumes, state.error);
  $('verdict').className = said.tone;
  fill($('verdict'), said.nodes);
  const wants = (volume) => volumes.length === 1 || said.tone === 'bad' && rank(volume) === 0;
  fill($('volumes'), volumes.map((volume) => card(volume, histories.get(volume.name), actions, wants(volume))));
  // One that has become worse opens, once; whoever closes it is not contradicted.
  for (const volume of volumes) {
    const fold = $('volumes').querySelector(`[data-key="${CSS.escape(volume.name)}"] > details`);
    if (fold && rank(volume) === 0 && ranks.get(volume.name) > 0) fold.open = true;
    ranks.set(volume.name, rank(volume));
  }
  const attention = said.tone === 'good' || said.tone === 'still' ? '' : '(!) ';
  if (document.title !== `${attention}braid`) document.title = `${attention}braid`;
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button && button.act) button.act();
});

// --- operations ---------------------------------------------------------------------------------

// Asks what an operation would do, shows it, and does it when it is confirmed. `make` answers the path and
// the body of the request from what was filled in. The state by which it was planned goes with it.
function operate({ title, confirm = title, risk = false, fields = [], make }) {
  const dialog = $('ask');
  const close = () => dialog.close();
  const cancel = (label = 'Cancel') => h('button', { type: 'button', autofocus: true, act: close }, label);
  const heading = () => h('h2', { id: 'ask-title' }, title);
  const show = (...children) => {
    dialog.replaceChildren(heading(), ...children.flat().filter(Boolean));
    (dialog.querySelector('[autofocus]') || dialog).focus();
  };
  const note = (error) => h('div.note.bad', { role: 'alert' }, h('p', null, h('b', null, 'Not done: '), words(error.message)), error.next ? h('p', null, 'Next: ', words(error.next)) : null);
  // What was filled in stays, to be mended; without fields it can only be tried again.
  const refused = (error, again) => (fields.length ? form(error) : show(
    note(error), h('div.row.end', null, again ? h('button', { type: 'button', act: again }, 'Look again') : null, cancel('Close'))));

  const plan = async (values) => {
    const { path, body } = make(values);
    show(h('p', null, 'Asking what it would do …'), h('div.row.end', null, cancel()));
    let planned;
    try {
      planned = await post(`${path}?plan=1`, body);
    } catch (error) {
      return refused(error);
    }
    if (!planned.possible) {
      return refused({ message: `that is not possible now: ${planned.why_not}`, next: planned.next });
    }
    if (!planned.changes) return refused({ message: planned.does });
    const done = async () => {
      show(h('p', null, 'At it …'), h('div.row.end', null, h('button', { type: 'button', disabled: true }, confirm)));
      try {
        const answer = await post(path, planned.if_state ? { ...body, if_state: planned.if_state } : body);
        const text = typeof answer.done === 'string' && answer.done ? answer.done : 'Done.';
        show(h('div.note.good', { role: 'status' }, h('p', null, words(text))), h('div.row.end', null, cancel('Close')));
      } catch (error) {
        refused(error, () => plan(values));
      }
    };
    const writes = planned.plan && planned.plan.writes;
    return show(
      h('p', { id: 'does' }, words(planned.does)),
      planned.loses ? h('div.note.warn', { id: 'loses' }, h('p', null, h('b', null, 'Mind: '), words(planned.loses))) : null,
      writes ? h('details', null, h('summary', null, `What is written (${writes.length} places)`), h('ul.log', { tabindex: 0 }, writes.map((one) => h('li', null, h('span', null, one.what), h('span', null, `${one.member}, ${one.length_bytes} bytes at ${one.offset_bytes}`))))) : null,
      h('p.small.soft', null, 'The same by hand:', h('code.command', null, planned.command)),
      h('div.row.end', null, cancel(), h(risk ? 'button.risk' : 'button.main', { type: 'button', act: done }, confirm)));
  };

  const form = (error) => {
    const inputs = fields.map(field);
    const body = h('form', null, inputs, h('div.row.end', null, h('button', { type: 'button', act: close }, 'Cancel'), h('button.main', null, 'Show what it would do')));
    body.addEventListener('submit', (event) => {
      event.preventDefault();
      const values = {};
      for (const { name, kind } of fields) values[name] = kind === 'check' ? body.elements[name].checked : body.elements[name].value.trim();
      fields = fields.map((one) => ({ ...one, value: values[one.name] }));
      plan(values);
    });
    show(error ? note(error) : null, body);
    body.elements[0].focus();
  };

  show();
  dialog.showModal();
  if (fields.length) form();
  else plan({});
}

function field({ name, label, kind = 'text', hint, options, required = true, value = '' }) {
  const given = { id: `f-${name}`, name, required: required && kind !== 'check', 'aria-describedby': hint ? `h-${name}` : null, autocomplete: 'off', spellcheck: 'false' };
  const text = h('label', { for: `f-${name}` }, label);
  if (kind === 'check') return h('div.field.check', null, h('input', { ...given, type: 'checkbox', checked: value === true }), text);
  const input = kind === 'select' ? h('select', given, options.map((one) => h('option', { selected: one === value }, one)))
    : kind === 'lines' ? h('textarea', { ...given, rows: 4, value }) : h('input', { ...given, type: kind, value, min: kind === 'number' ? 0 : null, step: kind === 'number' ? 'any' : null });
  return h('div.field', null, text, input, hint ? h('span.hint.small', { id: `h-${name}` }, hint) : null);
}

const PATH = { name: 'path', label: 'Device or file', hint: 'From the root, such as /dev/sdb' };
const FORCE = { name: 'force', kind: 'check', label: 'Take it whatever it carries: that is overwritten' };
const MIB = 1 << 20;
// When a scrub pauses: at the next time of the day that is given, or so many hours from now.
function pauseAt(hours, until, now) {
  if (!until) return Math.round(now.getTime() + Number(hours || 0) * 3600e3);
  const [hour, minute] = until.split(':').map(Number);
  const at = new Date(now);
  at.setHours(hour, minute, 0, 0);
  if (at <= now) at.setDate(at.getDate() + 1);
  return at.getTime();
}
const count = (text, unit) => (text === '' ? null : Math.round(Number(text) * unit));
const eachLine = (text) => text.split('\n').map((one) => one.trim()).filter(Boolean);
const ordering = (volume, make) => ({
  make: (values) => ({ path: `/volumes/${volume}/orders`, body: { order: make(values) } }),
});

const RISKY = ['Take out', 'Erase', 'Check and repair'];

const actions = {
  offer: (volume, { label, member, order }) => operate({
    title: `${label}: ${member || volume}`, confirm: label, risk: RISKY.includes(label), ...ordering(volume, () => order),
  }),
  add: (volume) => operate({
    title: `Add a member to ${volume}`, confirm: 'Add it', fields: [PATH, { name: 'again', kind: 'check', label: 'It was a member: only as that one, copying what was written meanwhile' }, FORCE],
    ...ordering(volume, ({ path, again, force }) => ({ add: { member: path, again, force, array: null } })),
  }),
  replace: (volume, member) => operate({
    title: `Replace ${member}`, confirm: 'Replace it', fields: [{ ...PATH, label: 'Device or file that takes over' }, FORCE],
    ...ordering(volume, ({ path, force }) => ({ replace: { member, with: path, force, array: null } })),
  }),
  scrubFor: (volume) => operate({
    title: `Scrub ${volume} for a time`, confirm: 'Begin, or go on', fields: [
      { name: 'hours', kind: 'number', required: false, label: 'Hours', value: '4', hint: 'It pauses then, and goes on there the next time' },
      { name: 'until', kind: 'time', required: false, label: 'Or until this time of the day' },
      { name: 'latency', kind: 'number', required: false, label: 'Clients wait at most, in ms', hint: '99 of 100 requests; empty: as the speed of passes has it' },
      { name: 'repair', kind: 'check', label: 'Make what differs agree' },
    ],
    ...ordering(volume, ({ hours, until, latency, repair }) => ({
      'scrub-until': { repair, until_ms: pauseAt(hours, until, new Date()), latency_us_p99: count(latency, 1000), array: null },
    })),
  }),
  speed: (volume) => operate({
    title: `Speed of passes of ${volume}`, confirm: 'Set it', fields: [
      { name: 'min', kind: 'number', required: false, label: 'At least, in MiB/s', hint: 'Whatever clients do; empty: as it is' },
      { name: 'max', kind: 'number', required: false, label: 'At most, in MiB/s', hint: '0: as fast as it goes; empty: as it is' },
      { name: 'latency', kind: 'number', required: false, label: 'Clients wait at most, in ms', hint: '99 of 100 requests; 0: no target; empty: as it is' },
    ],
    ...ordering(volume, ({ min, max, latency }) => ({
      speed: { min_bytes_per_second: count(min, MIB), max_bytes_per_second: count(max, MIB), latency_us_p99: count(latency, 1000), array: null },
    })),
  }),
  cache: (volume) => operate({
    title: `Cache in front of ${volume}`, confirm: 'Attach it', fields: [
      { name: 'size', kind: 'number', label: 'Memory, in MiB', value: '64' },
      { name: 'mode', kind: 'select', label: 'Writes', options: ['write-through', 'write-around'] },
    ],
    ...ordering(volume, ({ size, mode }) => ({ cache: { attach: { parameters: `size=${count(size, MIB)}, mode=${mode}` } } })),
  }),
  copies: (volume, array, now) => operate({
    title: `Copies of ${array}`, confirm: 'Change it', fields: [{ name: 'count', kind: 'number', label: 'Members that hold a copy', value: String(now), hint: 'Those that are new are filled from spares' }],
    ...ordering(volume, ({ count: wanted }) => ({ 'raid-disks': { count: count(wanted, 1), array } })),
  }),
  grow: (volume, array) => operate({
    title: `Use all of the members of ${array}`, confirm: 'Use all', ...ordering(volume, () => ({ 'member-size': { bytes: null, array } })),
  }),
  cacheMode: (volume) => operate({
    title: `Writes of the cache of ${volume}`, confirm: 'Change it', fields: [
      { name: 'mode', kind: 'select', label: 'Writes', options: ['write-through', 'write-around', 'write-back'] },
      { name: 'log', required: false, label: 'Log, for write-back', hint: 'A file or device that keeps what was flushed; it is overwritten' },
    ],
    ...ordering(volume, ({ mode, log }) => ({ cache: { mode: { mode, parameters: mode === 'write-back' && log ? `log=${log}` : '' } } })),
  }),
  save: (volume) => operate({
    title: `Save ${volume}`, confirm: 'Save it', fields: [{ name: 'file', label: 'New file', hint: 'From the root, such as /srv/scratch.lz4' }],
    ...ordering(volume, ({ file }) => ({ whole: { save: { file, force: false } } })),
  }),
  restore: (volume) => operate({
    title: `Restore ${volume}`, confirm: 'Overwrite it', risk: true, fields: [{ name: 'file', label: 'File that was saved', hint: 'From the root, such as /srv/scratch.lz4' }],
    ...ordering(volume, ({ file }) => ({ whole: { restore: { file, force: false } } })),
  }),
  rename: (volume) => operate({
    title: `Rename ${volume}`, confirm: 'Rename it', fields: [{ name: 'to', label: 'Its name from now on' }],
    make: ({ to }) => ({ path: '/volumes', body: { rename: { name: volume, to } } }),
  }),
  cacheSize: (volume) => operate({
    title: `Memory of the cache of ${volume}`, confirm: 'Resize it', fields: [{ name: 'size', kind: 'number', label: 'Memory, in MiB' }],
    ...ordering(volume, ({ size }) => ({ cache: { resize: { bytes: count(size, MIB) } } })),
  }),
  resize: (volume) => operate({
    title: `Resize ${volume}`, confirm: 'Resize it', fields: [{ name: 'size', kind: 'number', label: 'Size, in MiB' }],
    ...ordering(volume, ({ size }) => ({ whole: { resize: { bytes: count(size, MIB) } } })),
  }),
  down: (volume, force = false) => operate({
    title: `Bring down ${volume}`, confirm: 'Bring down', risk: true,
    fields: [{ name: 'force', kind: 'check', label: 'Also if somebody uses it: it is taken away from them', value: force }],
    make: ({ force }) => ({ path: `/volumes/${volume}/stop`, body: { force } }),
  }),
  up: (name) => operate({
    title: `Bring up ${name}`, confirm: 'Bring up', fields: [
      { name: 'degraded', kind: 'check', label: 'Also without members that it was last seen with' },
      { name: 'read_only', kind: 'check', label: 'For reading only' },
      { name: 'nbd', required: false, label: 'Where NBD clients connect', hint: 'Such as tcp:10809, on 127.0.0.1; empty: as its record says' },
    ],
    make: ({ nbd, ...values }) => ({ path: '/volumes', body: { up: { name, ...values, nbd: nbd ? [nbd] : [] } } }),
  }),
  stack: () => operate({
    title: 'Bring up a stack', confirm: 'Bring up', fields: [
      { name: 'stack', label: 'Stack', hint: 'Such as raid0(/dev/sdb, /dev/sdc), or ram(1G)' },
      { name: 'name', label: 'Name' },
    ],
    make: ({ stack, name }) => ({ path: '/volumes', body: { up: { stack, name } } }),
  }),
  create: () => operate({
    title: 'Create an array', confirm: 'Create it', risk: true, fields: [
      { name: 'name', label: 'Name' },
      { name: 'level', kind: 'select', label: 'Level', options: ['raid1', 'raid10', 'raid5', 'raid6', 'raid4', 'raid0', 'linear'] },
      { name: 'members', kind: 'lines', label: 'Members', hint: 'One a line, from the root; what they carry is looked at first, and refused' },
      { name: 'spares', kind: 'lines', required: false, label: 'Spares', hint: 'One a line; they take over for a member that fails' },
      { name: 'chunk', kind: 'number', required: false, label: 'Chunk, in KiB', hint: 'Empty: 512, of levels that have chunks' },
      { name: 'bitmap', kind: 'select', label: 'Bitmap', options: ['as usual', 'internal', 'none'], hint: 'With one, a member that comes back is filled with what it missed alone' },
    ],
    make: ({ name, level, members, spares, chunk, bitmap }) => ({
      path: '/volumes', body: { create: { name, level, members: eachLine(members), spares: eachLine(spares), chunk_bytes: count(chunk, 1024) ?? undefined, bitmap: bitmap === 'as usual' ? undefined : bitmap } },
    }),
  }),
};

// --- cases --------------------------------------------------------------------------------------

const CASES_AGAIN_MS = 5000;

// What a command does to a case is seen soon after.
async function listCases() {
  const place = $('cases');
  place.hidden = false;
  try {
    const { cases } = await (await ask('/cases')).json();
    fill(place, cases.map(caseCard));
  } catch (error) {
    fill(place, [h('p.note.bad', null, words(error.message))]);
    if (error.status === 401) return;
  }
  setTimeout(listCases, CASES_AGAIN_MS);
}

// --- reports ------------------------------------------------------------------------------------

async function openReport(path) {
  const dialog = $('paper');
  const close = h('button', { type: 'button', autofocus: true, act: () => dialog.close() }, 'Close');
  const head = h('div.row', null, h('h2', { id: 'paper-title' }, path), close);
  dialog.replaceChildren(head);
  dialog.showModal();
  try {
    const { url } = await post('/reports/open', { path });
    dialog.append(h('iframe', { src: url, sandbox: '', title: path }));
  } catch (error) {
    dialog.append(h('p.note.bad', { role: 'alert' }, words(error.message)));
  }
}

async function listReports() {
  const place = $('reports');
  place.hidden = false;
  let nodes;
  try {
    const { reports } = await (await ask('/reports')).json();
    // Results without a page are drawn when they are opened.
    const isPage = ({ path }) => /(\.html|\.sqlite)$/.test(path);
    const pages = reports.filter(isPage);
    const others = reports.filter((one) => !isPage(one));
    const line = ({ path, modified_ms: at }) => h('li', { 'data-key': path }, h('span', null, path), h('div.row', null, h('span.soft.small', null, new Date(at).toLocaleString()), h('button', { type: 'button', 'aria-label': `Open ${path}`, act: () => openReport(path) }, 'Open')));
    nodes = [pages.length ? h('ul.list', null, pages.map(line)) : h('p.soft', null, words('There are no reports yet: `braid lab run` makes them.')),
      others.length ? h('details', { 'data-key': 'others' }, h('summary', null, `Data (${others.length})`), h('ul.list', null, others.map(line))) : null];
  } catch (error) {
    nodes = [h('p.note.bad', null, words(error.message))];
  }
  const again = h('button', { type: 'button', act: listReports }, 'Look again');
  fill(place, [h('article.card', { 'aria-labelledby': 'reports-title' }, h('div.head', null, h('h2', { id: 'reports-title' }, 'Laboratory'), again), nodes)]);
}

async function start() {
  follow();
  try {
    const about = await (await ask('')).json();
    fill($('more'), [h('div.row', null, h('button', { type: 'button', act: actions.stack }, 'Bring up a stack …'), h('button', { type: 'button', act: actions.create }, 'Create an array …'))]);
    $('more').hidden = false;
    if (about.cases) listCases();
    if (about.reports) listReports();
  } catch {
    // The stream says what is wrong.
  }
}

start();
