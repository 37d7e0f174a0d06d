import { createCollection } from '@tanstack/db';
import { expect, test } from 'vitest';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { createKubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';
import { kubecastCollection } from './tanstack-db.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const object = (uid: string, resourceVersion: string): object => ({ metadata: { name: uid, uid, resourceVersion } });
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test('a collection is ready with the snapshot, has each change once, and leaves the stream when it is cleaned up', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  const collection = createCollection(kubecastCollection(kc, jobs));
  await settle();
  expect(server.requests).toHaveLength(0); // nobody uses it yet
  const preloaded = collection.preload();
  await settle();
  const body = server.last.accept(frame('w0.added', 'e', object('a', '1')) + frame('w0.added', 'e', object('b', '1')));
  await settle();
  expect(collection.status).toBe('loading'); // not before the snapshot is complete
  expect(collection.size).toBe(0);
  body.push(frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }));
  await preloaded;
  expect(collection.status).toBe('ready');
  expect([...collection.keys()].sort()).toEqual(['a', 'b']);
  const told: string[] = [];
  const subscription = collection.subscribeChanges((changes) => told.push(...changes.map(({ type, key }) => `${type} ${key}`)), { includeInitialState: true });
  expect(told.splice(0).sort()).toEqual(['insert a', 'insert b']);
  body.push(frame('w0.modified', 'e.w0-2', object('a', '2')) + frame('w0.deleted', 'e.w0-3', object('b', '3')) + frame('w0.added', 'e.w0-4', object('c', '4')));
  await settle();
  expect(told.sort()).toEqual(['delete b', 'insert c', 'update a']);
  expect(collection.get('a')?.metadata.resourceVersion).toBe('2');
  subscription.unsubscribe();
  await collection.cleanup();
  await settle();
  expect(server.last.aborted).toBe(true);
  kc.close();
});

test('what may not be watched fails the collection with the reason', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  const collection = createCollection(kubecastCollection(kc, jobs));
  const told = expect(collection.preload()).rejects.toThrow('HTTP 403');
  await settle();
  server.last.refuse(403);
  await settle();
  server.last.refuse(403);
  await told;
  expect(collection.status).toBe('error');
  kc.close();
});
