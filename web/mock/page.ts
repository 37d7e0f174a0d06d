// A page in virtual time, and a server whose answers its test writes by hand.

import { afterEach, beforeEach, vi } from 'vitest';
import { createKubecast, type Kubecast } from '../sdk/src/index.ts';
import { ScriptedFetch } from './fetch.ts';

/** Hands both to `begin` before each test of a file, made anew. */
export function eachPage(begin: (page: { readonly server: ScriptedFetch; readonly kc: Kubecast }) => void): void {
  let kc: Kubecast;
  beforeEach(() => {
    vi.useFakeTimers();
    const server = new ScriptedFetch();
    kc = createKubecast({ token: () => 't', fetch: server.fetch, random: () => 0 });
    begin({ server, kc });
  });
  afterEach(() => {
    kc.close();
    vi.useRealTimers();
  });
}
