// A log as a file, whole, whatever of it is on screen.

import { pathOf, type KubeObject, type Resource } from '@kubecast/sdk';

/** Where the log of a pod, or of what pods belong to, is answered as a text, as much of it as there is, and then ends. */
export function logPath(resource: Resource<KubeObject>, namespace: string, name: string): string {
  return `/logs${pathOf(resource, { namespace, name })}?follow=false&tailLines=1000000`;
}

/** Saves the text of an address. Rejects with the gateway's own words. */
export async function downloadLog(path: string, file: string, token: string | undefined): Promise<void> {
  const headers = { Accept: 'text/plain', ...(token !== undefined && { Authorization: `Bearer ${token}` }) };
  const response = await fetch(path, { headers, cache: 'no-store' });
  if (!response.ok) throw new Error(await detailOf(response));
  // To the end, or it rejects: a file that looks whole and is not would be worse than none.
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = `${file}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function detailOf(response: Response): Promise<string> {
  const { detail, message } = (await response.json().catch(() => ({}))) as { detail?: string; message?: string };
  return detail ?? message ?? `HTTP ${response.status}`;
}
