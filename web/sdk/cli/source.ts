// Where the documents come from: a gateway (or API server), or files.

import { readdir, readFile } from 'node:fs/promises';
import { request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { join } from 'node:path';
import { CommandError } from './error.ts';
import { documentOf, type Document } from './openapi.ts';

export interface GatewayOptions {
  /** Its address, with the path before `/openapi`, if there is one. */
  readonly url: string;
  readonly token: string | undefined;
  /** Certificates in PEM that are trusted in place of the usual ones. */
  readonly ca: string | undefined;
}

/** How long an answer may take to come, in milliseconds. */
const patience = 30_000;
const most = 64 << 20;
const without = '\nWithout a cluster there is --from, or defineResource by hand: "Begin" of the README of @kubecast/sdk shows how.';

/** The documents of these groups, of all if undefined; the core group is ''. */
export async function fromGateway(options: GatewayOptions, groups: ReadonlySet<string> | undefined): Promise<Document[]> {
  const index = (await get(options, '/openapi/v3')) as { readonly paths?: Readonly<Record<string, unknown>> } | null;
  if (typeof index?.paths !== 'object') throw new CommandError(`${options.url}/openapi/v3 answers with no index of documents: is it a gateway?`);
  const paths = Object.keys(index.paths)
    .filter((path) => {
      const match = /^api(?:s\/([^/]+))?\/[^/]+$/.exec(path);
      return match && (groups?.has(match[1] ?? '') ?? true) && !/^apis\/[^/]+$/.test(path);
    })
    .sort();
  const documents: Document[] = [];
  for (const path of paths) documents.push(documentOf(await get(options, `/openapi/v3/${path}`), `${options.url}/openapi/v3/${path}`));
  return documents;
}

/** Each file below a folder whose name ends in .json, such as `kubectl get --raw /openapi/v3/apis/batch/v1` writes. */
export async function fromFiles(folder: string): Promise<Document[]> {
  const entries = await readdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new CommandError(`cannot read ${folder}: ${(error as Error).message}`);
  });
  const files = entries.filter((name) => name.endsWith('.json')).sort();
  if (files.length === 0) throw new CommandError(`there is no file in ${folder} whose name ends in .json`);
  return Promise.all(
    files.map(async (name) => {
      const file = join(folder, name);
      const text = await readFile(file, 'utf8').catch((error: unknown) => {
        throw new CommandError(`cannot read ${file}: ${(error as Error).message}`);
      });
      return documentOf(parse(text, file), file);
    }),
  );
}

function parse(text: string, from: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null) throw new CommandError(`${from} is no JSON object`);
  return value;
}

async function get({ url, token, ca }: GatewayOptions, path: string): Promise<unknown> {
  const address = new URL(url.replace(/\/+$/, '') + path);
  const headers = { Accept: 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const { status, body } = await new Promise<{ status: number; body: string }>((resolve, reject) => {
    const fail = (error: Error): void => reject(new CommandError(`cannot reach ${address.href}: ${error.message || String((error as NodeJS.ErrnoException).code)}${without}`));
    const request = (address.protocol === 'https:' ? requestSecure : requestPlain)(address, { headers, timeout: patience, ...(ca ? { ca } : {}) }, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        if ((size += chunk.length) > most) request.destroy(new Error(`the answer is longer than ${most >> 20} MiB`));
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      response.on('error', fail);
    });
    request.on('timeout', () => request.destroy(new Error(`nothing came for ${patience / 1_000} s`)));
    request.on('error', fail);
    request.end();
  });
  if (status === 401) throw new CommandError(token ? `${address.origin} does not accept the token` : `${address.origin} wants a token: --token-file, or KUBECAST_TOKEN`);
  if (status === 200) return parse(body, address.href);
  // As Kubernetes says it, or as a problem.
  const { message, detail = message } = parse(body.startsWith('{') ? body : '{}', address.href) as { readonly message?: string; readonly detail?: string };
  throw new CommandError(`${address.href} answers HTTP ${status}${detail ? `: ${detail}` : ''}${without}`);
}
