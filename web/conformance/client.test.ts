// This SDK, alone and with tabs, must pass all cases for clients; the obvious client must not, or they would say nothing.

import { createKubecast, defineResource, type KubecastOptions, type KubeObject } from '@kubecast/sdk';
import { tabs } from '@kubecast/sdk/tabs';
import { describe, expect, test } from 'vitest';
import { MockBrowser } from '../mock/browser.ts';
import { clientCases, lacks, type ClientSubject } from './index.ts';
import { openNaively } from './naive.ts';

const configMaps = defineResource<KubeObject>()({ group: '', version: 'v1', plural: 'configmaps' });
// The shortest that may be asked for; 2.5 times that is death.
const heartbeat = 5_000;

function sdk(share: () => Partial<KubecastOptions> & { end?: () => void }): ClientSubject {
  return {
    silence: heartbeat * 2.5,
    abilities: ['deltas'],
    open: ({ url, fetch }) => {
      const { end, ...options } = share();
      const kc = createKubecast({ gateway: url, token: () => 'let-me-in', fetch, heartbeat, random: () => 0.5, schedule: (flush) => flush(), ...options });
      const watch = kc.watch(configMaps, { deltas: true });
      watch.subscribe(() => undefined);
      return {
        rows: () => watch.getSnapshot().data,
        status: () => watch.getSnapshot().status,
        close: () => {
          kc.close();
          end?.();
        },
      };
    },
  };
}

const subjects: Record<string, ClientSubject> = {
  'the SDK': sdk(() => ({})),
  'the SDK over a network': { ...sdk(() => ({})), network: true },
  'the SDK with tabs': sdk(() => {
    const tab = new MockBrowser().open();
    return { share: tabs({ surroundings: tab }), end: () => setTimeout(() => tab.kill(), 50) };
  }),
};

describe.concurrent.each(Object.entries(subjects))('%s', (_, subject) => {
  for (const one of clientCases) {
    test.skipIf(lacks(one, subject) !== undefined).concurrent(one.name, () => one.run(subject));
  }
});

const naive: ClientSubject = { open: openNaively, silence: 500 };
/** What the obvious client gets right by itself. */
const passes = new Set([
  'bookmark-moves',
  'byte-by-byte',
  'changes',
  'close-is-the-end',
  'cut-within-a-frame',
  'drained',
  'ends-well',
  'first-refused',
  'heartbeats-are-life',
  'made-anew',
  'many-at-once',
  'names-of-the-language',
  'narrowed',
  'position-is-opaque',
  'position-refused',
  'refused',
  'resumes-behind-the-last',
  'retry',
  'signed-out',
  'snapshot-of-nothing',
  'told-again',
  'unknown-is-passed-over',
  'upserts',
  'versions-are-text',
]);

describe.concurrent('a client of an EventSource and a Map', () => {
  for (const one of clientCases) {
    test.skipIf(lacks(one, naive) !== undefined).concurrent(`${passes.has(one.name) ? 'passes' : 'fails'} ${one.name}`, async () => {
      const said = await one.run(naive).then(() => 'passed', (error: unknown) => (error as Error).name);
      expect(said).toBe(passes.has(one.name) ? 'passed' : 'Failure');
    });
  }
});
