// Tells what handing frames from tab to tab costs, as texts and decoded: `node decode.mjs`, in Chromium (`/usr/bin/chromium`, or KUBECAST_CHROMIUM).
// What it says is why tabs decode for themselves; see docs/decisions/streams.md.

import { createServer } from 'node:http';
import { chromium } from 'playwright-core';

const server = createServer((_, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const browser = await chromium.launch({ executablePath: process.env.KUBECAST_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);

/** In microseconds for each event: what the leader does, and each of the others. */
async function measure({ containers, batch, decoded }) {
  return page.evaluate(async ([containers, batch, decoded]) => {
    const object = (n) => ({
      apiVersion: 'v1', kind: 'Pod',
      metadata: { name: `train-${n}`, namespace: 'team-a', uid: `${n}-0b0c`, resourceVersion: String(n), labels: { app: 'train', queue: 'gpu' }, annotations: { note: 'x'.repeat(80) } },
      spec: { nodeName: `node-${n % 100}`, containers: Array.from({ length: containers }, (_, c) => ({ name: `c${c}`, image: 'registry/train:1', env: [{ name: 'A', value: 'b' }, { name: 'N', value: String(n) }], resources: { requests: { cpu: '2', memory: '4Gi' } } })) },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }, { type: 'Initialized', status: 'True' }], containerStatuses: Array.from({ length: containers }, (_, c) => ({ name: `c${c}`, ready: true, restartCount: 0 })) },
    });
    const rounds = Math.ceil(4000 / batch);
    const [from, to] = [new BroadcastChannel('decode'), new BroadcastChannel('decode')];
    let [leader, other] = [0, 0];
    for (let round = 0; round < rounds; round++) {
      const frames = Array.from({ length: batch }, (_, n) => ({ event: 'w0.modified', id: 'e1.w0-7', data: JSON.stringify(object(round * batch + n)) }));
      const told = new Promise((resolve) => {
        to.onmessage = (message) => {
          const began = performance.now();
          const { data } = message;
          for (const frame of data) if (!decoded && JSON.parse(frame.data).kind === '') return;
          other += performance.now() - began;
          resolve();
        };
      });
      const parsed = frames.map((frame) => JSON.parse(frame.data)); // which the leader does in any case
      const began = performance.now();
      from.postMessage(decoded ? frames.map(({ event, id }, n) => ({ event, id, object: parsed[n] })) : frames);
      leader += performance.now() - began;
      await told;
    }
    from.close();
    to.close();
    const each = (ms) => (1000 * ms) / (rounds * batch);
    return { leader: each(leader), other: each(other), bytes: JSON.stringify(object(7)).length };
  }, [containers, batch, decoded]);
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
for (const containers of [1, 16]) {
  for (const batch of [1, 100]) {
    const runs = [];
    for (let n = 0; n < 6; n++) runs.push([await measure({ containers, batch, decoded: false }), await measure({ containers, batch, decoded: true })]);
    const of = (which, side) => median(runs.slice(1).map((run) => run[which][side]));
    const total = (which, tabs) => of(which, 'leader') + (tabs - 1) * of(which, 'other');
    const told = [0, 1].map((which) => `leader ${of(which, 'leader').toFixed(1)}, each other ${of(which, 'other').toFixed(1)}`);
    console.log(`${runs[0][0].bytes} bytes, ${batch} at once, in µs an event: as text ${told[0]}; decoded ${told[1]}; decoded/text with 2, 4, 8 tabs: ${[2, 4, 8].map((tabs) => (total(1, tabs) / total(0, tabs)).toFixed(2)).join(', ')}`);
  }
}
await browser.close();
server.close();
