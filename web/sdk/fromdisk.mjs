// Tells how soon 20,000 rows are there from a browser's disk: `npm run build && node fromdisk.mjs`, in Chromium (`/usr/bin/chromium`, or KUBECAST_CHROMIUM).
// With a number behind it: of so many writings before, each of 200 rows that have changed, which are those of ten seconds if one of 1,000 rows changes each second.
// From the call of `keepOffline` to the first snapshot that has all of them, in pages that are opened anew; no gateway answers. Beside it, what the same bytes take without the SDK.

import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { build } from 'vite';

const count = 20_000;
const changes = Number(process.argv[2] ?? 0);
const code = `
import { createKubecast, defineResource } from './dist/index.js';
import { keepOffline } from './dist/offline/index.js';
const pods = defineResource()({ version: 'v1', plural: 'pods' });
const frame = (event, id, data) => 'event: ' + event + '\\nid: ' + id + '\\ndata: ' + JSON.stringify(data) + '\\n\\n';
const row = (n, version) => ({ metadata: { name: 'train-' + n, namespace: 'team-' + n % 40, uid: n + '-0b0c-4d1f-8a7e', resourceVersion: String(version), labels: { app: 'train' } }, spec: { nodeName: 'node-' + n % 300 }, status: { phase: 'Running', startTime: '2026-11-27T10:00:00Z' } });
let stream;
const say = (text) => stream.enqueue(new TextEncoder().encode(text));
const begin = () => Promise.resolve(new Response(new ReadableStream({ start: (c) => {
  stream = c;
  say(Array.from({ length: ${count} }, (_, n) => frame('w0.added', 'e', row(n, n))).join('') + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: ${count} }));
} }), { headers: { 'Content-Type': 'text/event-stream' } }));
const at = async (fetch) => {
  const kc = createKubecast({ token: () => 't', fetch });
  const began = performance.now();
  const offline = await keepOffline(kc, { user: 'mara' });
  const watch = kc.watch(pods);
  const leave = watch.subscribe(() => undefined);
  const took = performance.now() - began;
  return { watch, offline, took, count: watch.getSnapshot().data.length, status: watch.getSnapshot().status };
};
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
window.fill = async (changes) => {
  const { watch, offline } = await at(begin);
  while (watch.getSnapshot().status !== 'live') await pause();
  const began = performance.now();
  await offline.save();
  const took = performance.now() - began;
  let written = 0;
  const put = IDBObjectStore.prototype.put;
  IDBObjectStore.prototype.put = function (value, key) {
    if (typeof value === 'string') written += value.length;
    return put.call(this, value, key);
  };
  let version = ${count};
  for (let n = 0; n < changes; n++) {
    let text = '';
    let last;
    for (let change = 0; change < 200; change++) text += frame('w0.modified', 'e.w0-' + ++version, row(last = version * 7919 % ${count}, version));
    say(text);
    while (watch.getSnapshot().data[last].metadata.resourceVersion !== String(version)) await pause();
    await offline.save();
  }
  return { took, written };
};
// The same bytes, without us: read, and parsed. With the opening, as at() has it.
window.floor = async () => {
  const began = performance.now();
  const db = await new Promise((resolve) => { const request = indexedDB.open('kubecast'); request.onsuccess = () => resolve(request.result); });
  const opened = performance.now();
  const texts = await new Promise((resolve) => { const request = db.transaction('rows').objectStore('rows').getAll(); request.onsuccess = () => resolve(request.result); });
  const read = performance.now();
  const parsed = texts.map((text) => JSON.parse(text)).reduce((sum, rows) => sum + rows.length, 0);
  const done = performance.now();
  db.close();
  return { opened: opened - began, read: read - opened, parsed: done - read, rows: parsed, bytes: texts.reduce((sum, text) => sum + text.length, 0), texts: texts.length };
};
window.read = async () => {
  const { took, count, status } = await at(() => new Promise(() => undefined));
  return { took, count, status };
};
`;
const entry = { name: 'entry', resolveId: (id) => (id === 'entry' ? new URL('entry.js', import.meta.url).pathname : null), load: (id) => (id.endsWith('/entry.js') ? code : null) };
const output = await build({ configFile: false, logLevel: 'error', plugins: [entry], build: { write: false, target: 'es2022', rollupOptions: { input: 'entry' } } });
const script = [output].flat()[0].output[0].code;
const server = createServer((_, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<!doctype html><script type="module">${script}</script>`));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const browser = await chromium.launch({ executablePath: process.env.KUBECAST_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext();
const open = async () => {
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  return page;
};
const first = await open();
const { took: wrote, written } = await first.evaluate((changes) => window.fill(changes), changes);
await first.close();
const found = [];
const floors = [];
for (let n = 0; n < 15; n++) {
  const bare = await open();
  floors.push(await bare.evaluate(() => window.floor()));
  await bare.close();
  const page = await open();
  found.push(await page.evaluate(() => window.read()));
  await page.close();
}
if (found.some((one) => one.count !== count || one.status !== 'stale')) throw new Error(JSON.stringify(found));
const times = found.map(({ took }) => took).sort((a, b) => a - b);
console.log(`${count} rows from disk: ${times[7].toFixed(0)} ms (median of 15, ${times[0].toFixed(0)} to ${times[14].toFixed(0)}); written at once in ${wrote.toFixed(0)} ms`);
const median = (name) => floors.map((one) => one[name]).sort((a, b) => a - b)[7].toFixed(0);
if (changes > 0) console.log(`${(written / 1e6).toFixed(1)} million characters written in ${changes} writings of 200 rows that had changed`);
console.log(`of which without the SDK: opened in ${median('opened')} ms, read in ${median('read')} ms, parsed in ${median('parsed')} ms (medians of 15 in the same run; ${floors[0].bytes} characters in ${floors[0].texts} records)`);
await browser.close();
server.close();
