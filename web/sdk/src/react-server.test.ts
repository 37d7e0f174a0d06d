// A server that streams what it renders comes to its end, also where something is not there yet.
import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { createElement, Suspense, type ReactNode } from 'react';
import { renderToPipeableStream } from 'react-dom/server';
import { expect, test } from 'vitest';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { dehydrate } from './hydrate.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { KubecastProvider, useSuspenseObject } from './react.ts';
import { ready } from './ready.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const train = { namespace: 'a', name: 'train' } as const;

function Part(): ReactNode {
  const { status, reason, data } = useSuspenseObject(jobs, train);
  return `${reason ?? status} ${data?.metadata.name}`;
}

/** What a server streams, to its end. */
function streamed(client: Kubecast, errors: unknown[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const to = new Writable({
      write: (chunk, _, done) => {
        text += String(chunk);
        done();
      },
      final: (done) => {
        resolve(text);
        done();
      },
    });
    const tree = createElement(KubecastProvider, { client }, createElement(Suspense, { fallback: 'waiting' }, createElement(Part)));
    const { pipe } = renderToPipeableStream(tree, { onError: (error) => void errors.push(error), onShellError: reject, onShellReady: () => pipe(to) });
  });
}

test('components of a server import all that there is, as a client’s, and pages are bundled without a directive', async () => {
  const source = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
  expect(Object.keys(await import('./react-server.ts')).sort()).toEqual(Object.keys(await import('./react.ts')).sort());
  expect(source('./react-server.ts')).toMatch(/^'use client';\n/);
  expect(source('./react-server.ts')).not.toContain('export *'); // Next refuses it
  expect(source('./react.ts')).not.toContain("'use client'");
});

test('what a server has nothing of is the fallback, and its stream ends', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch });
  const errors: unknown[] = [];
  expect(await streamed(kc, errors)).toContain('waiting');
  expect(String(errors)).toContain('the browser renders this');
  expect(server.requests).toHaveLength(0);
  kc.close();
});

test('what a server was given it renders', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch });
  const rendering = ready(kc.watch(jobs, train));
  await expect.poll(() => server.requests.length).toBe(1);
  server.last.accept(frame('w0.added', 'e', { metadata: { name: 'train', uid: '1' } }) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await rendering;
  dehydrate(kc);
  const errors: unknown[] = [];
  expect(await streamed(kc, errors)).toContain('reconnecting train');
  expect(errors).toEqual([]);
  kc.close();
});
