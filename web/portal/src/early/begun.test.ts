import { afterEach, expect, test, vi } from 'vitest';
import { browserSession } from '../session/browser.ts';
import { begun } from './begun.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  globalThis.kubecastBegun = undefined;
});

const early = (...answers: readonly (readonly [path: string, answer: Response | undefined])[]): void => {
  globalThis.kubecastBegun = new Map(answers.map(([path, answer]) => [path, Promise.resolve(answer)]));
};

test('an answer is given once, since whoever asks later wants to know what is so then', async () => {
  const answer = new Response('{}');
  early(['/clusters', answer]);
  expect(await begun('/queues')).toBeUndefined();
  expect(await begun('/clusters')).toBe(answer);
  expect(await begun('/clusters')).toBeUndefined();
});

test('a page without start.js, as in development, asks itself', async () => {
  expect(await begun('/clusters')).toBeUndefined();
});

test('whose session it is was asked for early, and is asked for anew by who looks again', async () => {
  const info = (username: string): Response => new Response(JSON.stringify({ login: true, username }));
  const fetched = vi.fn(() => Promise.resolve(info('bob')));
  vi.stubGlobal('fetch', fetched);
  early(['/auth/session', info('mara')]);
  expect((await browserSession.look()).username).toBe('mara');
  expect(fetched).not.toHaveBeenCalled();
  expect((await browserSession.look()).username).toBe('bob');
});

test('a gateway that was away when it was asked early is asked again', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ login: true, username: 'mara' }))));
  early(['/auth/session', undefined]);
  expect((await browserSession.look()).username).toBe('mara');
});
