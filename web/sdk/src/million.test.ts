// A million rows that come and go through one watch, of which some thousands are there at a time. The last of them cost what the first ones did, and nothing is left of them.

import 'fake-indexeddb/auto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { frame } from '../../mock/fetch.ts';
import { createKubecast, defineResource, type KubeObject } from './index.ts';
import { keepOffline } from './offline/index.ts';
import { selector } from './select.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const tenth = 100_000;
/** How many are there at a time. */
const present = 3_000;
/** How many come, and as many go, in one piece of the stream. */
const piece = 1_000;

const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });
/** As a text by hand: what makes a million of them is no part of what is tried, and is as much work. */
const textOf = (what: string, at: number, n: number): string =>
  `event: w0.${what}\nid: e.w0-${at}\ndata: {"metadata":{"uid":"u${n}","name":"train-${n}","namespace":"team-a","resourceVersion":"${n + 1}"}}\n\n`;
const pause = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

/** In bytes, once nothing more can be collected. */
async function inUse(): Promise<number> {
  let least = Infinity;
  for (let n = 0; n < 5; n++) {
    await pause();
    collectGarbage();
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

test('a million rows that come and go leave nothing behind, and the last ones cost what the first ones did', { timeout: 240_000 }, async () => {
  let stream!: ReadableStreamDefaultController<Uint8Array>;
  let streams = 0;
  const fetch = () => {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => {
        stream = controller;
      },
    });
    streams++;
    return Promise.resolve(new Response(body, { headers: { 'Content-Type': 'text/event-stream' } }));
  };
  const kc = createKubecast({ token: () => 't', fetch, random: () => 0 });
  const offline = await keepOffline(kc, { user: 'mara', every: 3_600_000 });
  const watch = kc.watch(pods);
  let listened = 0;
  watch.subscribe(() => {
    listened++;
  });
  // As adapters have it that select.
  let selected: object | undefined;
  const select = selector(watch.getSnapshot, { select: (data: readonly KubeObject[]) => data.map(({ metadata }) => metadata.name) }, () => selected);
  watch.subscribe(() => void (selected = select()));

  const encoder = new TextEncoder();
  let told = 0;
  const more = (): Uint8Array => {
    let frames = '';
    for (const end = told + piece; told < end; told++) {
      frames += textOf('added', told, told);
      if (told >= present) frames += textOf('deleted', told, told - present);
    }
    return encoder.encode(frames);
  };
  const at = (n: number): string | undefined => watch.getSnapshot().data.at(n)?.metadata.uid;
  /** In milliseconds, from the socket to those who look at it. */
  const take = async (bytes: Uint8Array): Promise<number> => {
    const began = performance.now();
    stream.enqueue(bytes);
    while (at(-1) !== `u${told - 1}`) await pause();
    return performance.now() - began;
  };

  await pause();
  const heap: number[] = [];
  const cost: number[] = [];
  for (let n = 0; n < 10; n++) {
    let least = Infinity;
    for (const end = told + tenth; told < end; ) {
      least = Math.min(least, await take(more()));
      if (told === piece) stream.enqueue(encoder.encode(frame('w0.synced', `e.w0-${told}`, { resourceVersion: String(told), count: piece })));
      if (told % (tenth / 4) === 0) await offline.save();
    }
    expect([at(0), watch.getSnapshot().data.length]).toEqual([`u${told - present}`, present]);
    expect(selected).toMatchObject({ status: 'live', data: { length: present } });
    cost.push(least);
    // The second stream goes on where the first one ended, and has no snapshot and no end of one.
    if (n === 0) {
      stream.error(new Error('cut'));
      while (streams < 2) await pause();
      stream.enqueue(encoder.encode(frame('w0.bookmark', `e.w0-${told}`, { resourceVersion: String(told) })));
    }
    heap.push(await inUse());
  }
  expect(offline.end).toBeUndefined();
  expect(listened).toBeGreaterThan((9 * tenth) / piece);
  expect((heap.at(-1) ?? Infinity) - (heap[1] ?? 0), `bytes after each tenth: ${heap.join(' ')}`).toBeLessThan(1_000_000);
  expect((cost.at(-1) ?? Infinity) / (cost[1] ?? 1), `milliseconds of a piece in each tenth: ${cost.map((ms) => ms.toFixed(2)).join(' ')}`).toBeLessThan(2);
  offline.close();
  kc.close();
});
