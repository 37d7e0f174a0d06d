// A log as a file, whole, whatever of it is on screen.

import { pathOf, type KubeObject, type Resource } from '@kubecast/sdk';
import { base } from '../session/base.ts';

/** Saves the log of a pod, or of what pods belong to, as much of it as there is. Rejects with the gateway's own words. */
export async function downloadLog(resource: Resource<KubeObject>, namespace: string, name: string, cluster: string, token: string | undefined): Promise<void> {
  const path = `${base}/logs${pathOf(resource, { namespace, name, cluster })}?follow=false&tailLines=1000000`;
  const headers = { Accept: 'text/plain', ...(token !== undefined && { Authorization: `Bearer ${token}` }) };
  const response = await fetch(path, { headers, cache: 'no-store' });
  if (!response.ok) throw new Error(await detailOf(response));
  // To the end, or it rejects: a file that looks whole and is not would be worse than none.
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = `${namespace}-${name}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function detailOf(response: Response): Promise<string> {
  const { detail, message } = (await response.json().catch(() => ({}))) as { detail?: string; message?: string };
  return detail ?? message ?? `HTTP ${response.status}`;
}
