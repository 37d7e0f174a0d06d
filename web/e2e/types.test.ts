// The types of a real API server's kinds, all of them, through the real gateway, at the compiler's strictest.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { complaintsOf } from '../mock/typecheck.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const cli = fileURLToPath(new URL('../sdk/dist/cli/main.js', import.meta.url));
const lacking = missing({ [cli]: existsSync(cli), [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'jobs.batch.volcano.sh' },
  spec: {
    group: 'batch.volcano.sh',
    scope: 'Namespaced',
    names: { plural: 'jobs', singular: 'job', kind: 'Job' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { status: { type: 'object', properties: { state: { type: 'object', properties: { phase: { type: 'string', description: 'Where it stands.' } } } } } },
          },
        },
      },
    ],
  },
};

const page = `
import { createKubecast } from '@kubecast/sdk';
import { batchVolcanoShJobs, jobs, nodes, pods } from './kubernetes.ts';
const kc = createKubecast();
kc.watch(jobs, { fields: ['status.active', 'spec.template.spec.containers'] });
kc.watch(batchVolcanoShJobs, { fields: ['status.state.phase'] });
kc.watch(nodes, { fields: ['status.allocatable'] });
kc.watch(pods, { fields: ['status.containerStatuses', 'spec.tolerations'] });
`;
const wrong = `${page}kc.watch(jobs, { fields: ['status.actve'] });\n`;

describe.skipIf(lacking !== undefined)(`types from a real control plane${lacking ? ` (${lacking})` : ''}`, () => {
  let kubecast: Kubecast;
  let dir: string;
  let token: string;

  beforeAll(async () => {
    [kubecast, dir] = await Promise.all([Kubecast.start(), mkdtemp(join(tmpdir(), 'kubecast-types-'))]);
    token = await kubecast.token('mara.lindqvist', ['platform']);
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify(crd));
    await kubecast.kubectl(['wait', '--for=condition=Established', 'crd/jobs.batch.volcano.sh', '--timeout=60s']);
  });

  afterAll(async () => {
    await kubecast?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  // The gateway's line to the cluster goes through this process, which must not wait idly.
  const types = (args: readonly string[], KUBECAST_TOKEN = token): Promise<{ status: number; stderr: string }> =>
    new Promise((resolve) => {
      const child = execFile(process.execPath, [cli, 'types', '--gateway', kubecast.url, ...args], { env: { ...process.env, KUBECAST_TOKEN }, maxBuffer: 64 * 1024 * 1024 }, (_, __, stderr) =>
        resolve({ status: child.exitCode ?? -1, stderr }),
      );
    });

  test('all kinds compile, those of a CRD too, with its comments; and a wrong path does not', async () => {
    const out = join(dir, 'kubernetes.ts');
    await expect.poll(async () => (await types(['--out', out, '--kinds', 'jobs.batch.volcano.sh'])).stderr).toBe(''); // the API server takes its time
    expect(await types(['--out', out])).toMatchObject({ status: 0, stderr: '' });
    const text = await readFile(out, 'utf8');
    expect(text).toContain('/** Where it stands. */');
    const complaints = complaintsOf({ 'kubernetes.ts': text, 'page.ts': page, 'wrong.ts': wrong });
    expect(complaints).toEqual([expect.stringMatching(/^wrong\.ts:9 .*is not a path of these objects/)]);

    expect(await types(['--out', out, '--check'])).toMatchObject({ status: 0, stderr: '' });
    await writeFile(out, `${text}// edited\n`);
    expect(await types(['--out', out, '--check'])).toMatchObject({ status: 1, stderr: expect.stringContaining('is not what the cluster says now') as string });
  });

  test('what goes wrong is said in a line', async () => {
    expect((await types([], '')).stderr).toMatch(/^kubecast: \S+ wants a token: .*\n$/);
    expect((await types([], 'none')).stderr).toMatch(/^kubecast: \S+ does not accept the token\n$/);
    expect((await types(['--kinds', 'jbos.batch'])).stderr).toMatch(/^kubecast: no kind is called "jbos\.batch"; .*jobs\.v1\.batch\n$/);
    expect((await types(['--cluster', 'none'])).stderr).toMatch(/^kubecast: \S+\/clusters\/none\/openapi\/v3 answers HTTP 40[34]: .+\nWithout a cluster .*\n$/);
  });
});
