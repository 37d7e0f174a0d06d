// The mock is a server of this contract, too, as far as it goes; the real gateway is tried in e2e/conformance.test.ts.

import { describe, test } from 'vitest';
import { MockGateway, MockInbox, MockPast } from '../mock/index.ts';
import { lacks, serverCases, type Room, type ServerSubject } from './index.ts';

/** @param network on a port, and not in memory */
function mock(gateway: MockGateway): ServerSubject {
  let rooms = 0;
  return {
    get url() {
      return gateway.url;
    },
    headers: { Authorization: 'Bearer let-me-in' },
    abilities: ['forgets', 'queries', 'lists', 'history'],
    room: (): Promise<Room> => {
      const namespace = `room-${rooms++}`;
      const uids = new Map<string, string>();
      return Promise.resolve({
        path: `/api/v1/namespaces/${namespace}/configmaps`,
        jobs: {
          path: `/history/apis/batch/v1/namespaces/${namespace}/jobs`,
          submit: (name) => Promise.resolve(gateway.past?.record(name, 'Suspended', { namespace })),
          withdraw: (name) => Promise.resolve(gateway.past?.record(name, 'Deleted', { namespace })),
        },
        put: (name, { labels, data } = {}) => {
          const object = gateway.cluster.put('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, uid: uids.get(name), ...(labels && { labels }) }, data });
          uids.set(name, object.metadata.uid);
          return Promise.resolve(object);
        },
        remove: (name) => {
          gateway.cluster.remove('configmaps', uids.get(name) ?? '');
          uids.delete(name);
          return Promise.resolve();
        },
        forget: () => {
          gateway.cluster.compact();
          return Promise.resolve();
        },
      });
    },
  };
}

describe.each(['in memory', 'over a network'])('the mock %s', (where) => {
  for (const one of serverCases) {
    const gateway = new MockGateway();
    gateway.kinds = new Set(['configmaps', 'pods']);
    gateway.past = new MockPast();
    gateway.inbox = new MockInbox();
    const subject = where === 'in memory' ? { ...mock(gateway), url: 'http://gateway', fetch: gateway.fetch } : mock(gateway);
    test.skipIf(lacks(one, subject) !== undefined).concurrent(one.name, async () => {
      if (where !== 'in memory') await gateway.start();
      try {
        await one.run(subject);
      } finally {
        await gateway.stop();
      }
    });
  }
});
