#!/usr/bin/env node
// `kubecast types`: the types of a cluster's kinds, its own ones included.

import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { choose, readWanted, summaryOf } from './choose.ts';
import { CommandError } from './error.ts';
import { kindsOf } from './openapi.ts';
import { fromFiles, fromGateway } from './source.ts';
import { moduleOf } from './typescript.ts';

const usage = `kubecast types --gateway URL [--kinds pods,jobs.batch] [--out FILE]

writes TypeScript for the kinds that a gateway serves, those of CRDs included: an interface for each, with its comments,
and a constant to watch it with. What is not there does not compile.

  --gateway URL        the gateway, or an API server; in place of it:
  --from FOLDER        files with the documents, such as kubectl get --raw /openapi/v3/apis/batch/v1 writes
  --kinds LIST         only these: pods, jobs.batch, or jobs.v1.batch, by commas; all if it is missing
  --cluster NAME       of a gateway with several; the default one if it is missing
  --token-file FILE    what it is asked with; or the variable KUBECAST_TOKEN
  --ca FILE            certificates to trust, in PEM
  --out FILE           where it is written; the standard output if it is missing
  --check              writes nothing, and fails if the file is not what would be written
`;

const options = {
  gateway: { type: 'string' },
  from: { type: 'string' },
  kinds: { type: 'string' },
  cluster: { type: 'string' },
  'token-file': { type: 'string' },
  ca: { type: 'string' },
  out: { type: 'string' },
  check: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = read(args);
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  if (positionals.length !== 1 || positionals[0] !== 'types') throw new CommandError(`what is to be done? There is "kubecast types".\n\n${usage}`);
  if ((values.gateway === undefined) === (values.from === undefined)) throw new CommandError('either --gateway or --from is needed');
  if (values.check && values.out === undefined) throw new CommandError('--check needs the file: --out');

  const wanted = (values.kinds ?? '').split(',').filter(Boolean).map(readWanted);
  const groups = wanted.length > 0 ? new Set(wanted.map(({ group }) => group)) : undefined;
  const documents = values.from === undefined ? await fromGateway(await gatewayOf(values), groups) : await fromFiles(values.from);
  const kinds = choose(kindsOf(documents), wanted);
  if (kinds.length === 0) throw new CommandError('the documents tell of no kind that can be listed');
  const text = moduleOf(documents, kinds);

  if (values.out === undefined) process.stdout.write(text);
  else if (!values.check) {
    await written(values.out, text);
    process.stdout.write(`${summaryOf(values.out, kinds, wanted)}\n`);
  } else if ((await readFile(values.out, 'utf8').catch(() => undefined)) !== text) throw new CommandError(`${values.out} is not what the cluster says now: write it anew without --check`);
}

function read(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new CommandError(`${(error as Error).message}\n\n${usage}`);
  }
}

async function gatewayOf(values: { gateway?: string; cluster?: string; 'token-file'?: string; ca?: string }) {
  const gateway = values.gateway ?? '';
  if (!URL.canParse(gateway) || !/^https?:$/.test(new URL(gateway).protocol)) throw new CommandError(`--gateway: "${gateway}" is no address that begins with https:// or http://`);
  const token = values['token-file'] === undefined ? process.env.KUBECAST_TOKEN : await textOf('--token-file', values['token-file']);
  const ca = values.ca === undefined ? undefined : await textOf('--ca', values.ca);
  const url = gateway.replace(/\/+$/, '') + (values.cluster === undefined ? '' : `/clusters/${encodeURIComponent(values.cluster)}`);
  return { url, token: token?.trim() || undefined, ca };
}

async function written(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => {
    throw new CommandError(`--out: ${(error as Error).message}`);
  });
}

async function textOf(option: string, file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new CommandError(`${option}: ${(error as Error).message}`);
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  process.stderr.write(`kubecast: ${error.message.trimEnd()}\n`);
  process.exitCode = 1;
}
