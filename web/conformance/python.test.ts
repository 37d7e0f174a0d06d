// The Python client must pass all cases for clients. One interpreter runs all of them, as a program with many mirrors would.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { clientCases, lacks, type ClientSubject } from './index.ts';
import type { Row } from './client/subject.ts';

const home = fileURLToPath(new URL('../../clients/python/', import.meta.url));

interface Report {
  readonly client: number;
  readonly status: string;
  readonly rows: readonly Row[];
}

let driver: ChildProcess | undefined;
const reports = new Map<number, Report>();
let opened = 0;

const tell = (command: object): void => void driver?.stdin?.write(`${JSON.stringify(command)}\n`);

const python: ClientSubject = {
  network: true,
  silence: 12_500,
  abilities: ['deltas'],
  open: ({ url, path }) => {
    const client = ++opened;
    tell({ open: client, url, path });
    return {
      rows: () => reports.get(client)?.rows ?? [],
      status: () => reports.get(client)?.status ?? 'loading',
      close: () => tell({ close: client }),
    };
  },
};

beforeAll(async () => {
  driver = spawn('python3', ['tests/conformance_driver.py'], { cwd: home, env: { ...process.env, PYTHONPATH: 'src' }, stdio: ['pipe', 'pipe', 'inherit'] });
  if (!driver.stdout) throw new Error('the driver has no output');
  const lines = createInterface(driver.stdout);
  await once(lines, 'line'); // it is ready: no case waits for an interpreter that starts
  lines.on('line', (line) => {
    const report = JSON.parse(line) as Report;
    reports.set(report.client, report);
  });
});
afterAll(() => {
  driver?.stdin?.end();
  driver?.kill();
});

describe.concurrent('the Python client', () => {
  for (const one of clientCases) {
    test.skipIf(lacks(one, python) !== undefined).concurrent(one.name, () => one.run(python));
  }
});
