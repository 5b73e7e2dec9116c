// Cases of `braid rescue`: what their folders have. Nothing here changes anything.

import { bytes } from './chart.js';
import { h, words } from './view.js';

const list = (value) => (Array.isArray(value) ? value : []);
const VERDICT = { right: ['good', '✓'], doubtful: ['warn', '!'], wrong: ['bad', '✕'], unknown: ['still', '–'] };
const badge = (verdict) => {
  const [tone, mark] = VERDICT[verdict] || VERDICT.unknown;
  return h(`span.badge.${tone}`, null, `${mark} ${verdict}`);
};

function table(heads, rows) {
  if (!rows.length) return null;
  const cell = (text, place) => h(place === 0 ? 'td.name' : 'td', place === 0 ? null : { 'data-head': heads[place] }, words(text ?? ''));
  return h('table', null, h('thead', null, h('tr', null, heads.map((one) => h('th', null, one)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map(cell)))));
}

// The regions of an array as a strip: each says whether parity or copies agree there.
function strip({ agreeing, differing, unknown, cells }) {
  const kind = ([good, bad]) => (good + bad === 0 ? 'none' : bad === 0 ? 'same' : good > bad ? 'some' : 'differ');
  const text = `${agreeing} samples agree, ${differing} differ, ${unknown} cannot be compared`;
  return h('figure.wide', null, h('figcaption', null, h('b', null, 'Parity or copies'), h('span', null, text)),
    h('div.strip', { role: 'img', 'aria-label': text }, list(cells).map((one) => h(`i.${kind(list(one))}`, null))),
    h('p.row.small.soft', null, h('span.mark.same', null, 'agrees'), h('span.mark.some', null, 'differs in places'), h('span.mark.differ', null, 'differs'), h('span.mark.none', null, 'cannot be compared')));
}

function checker({ program, outcome, complaints, more, notes }) {
  const said = { clean: 'finds no errors', errors: 'finds errors', failed: 'cannot check it', unfinished: 'did not end in time', skipped: 'did not run' }[outcome] || outcome;
  return [h('dt', null, 'Checker'), h('dd', null, `${program || 'None'} ${said}`, list(notes).map((one) => h('p.small.soft', null, one)),
    list(complaints).length ? h('details', null, h('summary', null, `Complaints (${list(complaints).length + (more || 0)})`), h('ul.log', { tabindex: 0 }, list(complaints).map((one) => h('li.plain', null, one)))) : null)];
}

function samples({ how, good, bad, unchecked, interval, files, suspect, mended }) {
  const share = interval ? `, ${interval.map((one) => (100 * one).toFixed(1)).join(' to ')} % of such files with a confidence of 95 %` : '';
  const because = mended ? `Computed without ${suspect}, ${mended[0]} of ${mended[1]} bad files are good.` : `All bad ranges lie on ${suspect}.`;
  return [h('dt', null, 'Files'), h('dd', null, `${good} of ${good + bad} good${share}`, h('p.small.soft', null, `Found ${how}; ${unchecked} could not be checked`),
    suspect ? h('p', null, h('b', null, because)) : null,
    list(files).length ? h('details', null, h('summary', null, `Bad files (${bad})`), h('ul.log', { tabindex: 0 }, list(files).map((one) => h('li.plain', null, `${one.name}: ${one.format}: ${one.why}; on ${list(one.members).join(', ')}`)))) : null)];
}

function result(one) {
  return h('section.result', { 'data-key': one.stack },
    h('div.head', null, h('h3', null, `${one.volume}, ${bytes(one.size_bytes)}`), badge(one.verdict), h('span.soft.small', null, `verified ${new Date(one.at_s * 1000).toLocaleString()}`)),
    list(one.doubts).map((text) => h('p.note.warn', null, words(text))),
    one.compared ? strip(one.compared) : null,
    h('dl.facts', null, one.checker ? checker(one.checker) : null, one.samples ? samples(one.samples) : null),
    table(['Member', 'Role', 'Events', 'Last written', 'How it stands'], list(one.members).map((row) => [row.member, row.role, row.events, row.written, row.how])),
    h('details', null, h('summary', null, 'Stack'), h('code.command', null, one.stack)));
}

function found(member) {
  const places = list(member.places).map((place) => `${typeof place.how === 'string' ? place.how : 'member'}, from byte ${place.start} on`);
  return places.length ? places.join(', ') : 'no place of a member';
}

export function caseCard(one) {
  const verified = list(one.verified);
  const ranked = list(one.hypotheses);
  return h('article.card', { 'data-key': one.folder, 'aria-label': `Case ${one.name}` },
    h('div.head', null, h('h2', null, `Case ${one.name}`), h('span.soft.small', null, one.folder)),
    list(one.problems).map((text) => h('p.note.bad', null, text)),
    verified.length ? verified.map(result) : h('p.soft', null, words(`Nothing was verified yet: \`braid rescue verify ${one.name}\`.`)),
    ranked.length ? [h('h3', null, 'Hypotheses'), table(['Geometry', 'Number', 'Score', 'Missing', 'Verified'], ranked.map((row, place) => [row.geometry, place + 1, row.score, row.missing, row.is_verified ? 'yes' : 'no']))] : null,
    list(one.members).length ? h('details', null, h('summary', null, `Members (${one.members.length})`),
      table(['Path', 'Size', 'Serial number', 'Found', 'Map'], one.members.map((row) => [row.path, bytes((row.fingerprint || {}).size || 0), (row.fingerprint || {}).serial || '–', found(row), row.map || '–']))) : null,
    h('p.small.soft', null, 'For reading only: orders are given by ', h('code', null, 'braid rescue'), '.'));
}
