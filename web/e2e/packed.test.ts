// The package as others get it: packed, installed in an empty folder, used from Node, compiled by strict rules of others, and bundled.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { components } from '../sdk/examples/compile.ts';
import { missing } from './support/skip.ts';

const web = fileURLToPath(new URL('..', import.meta.url));
const built = join(web, 'sdk/dist/testing/index.js');
const lacking = missing({ [built]: existsSync(built) });

const program = `
import { createKubecast, defineResource } from '@kubecast/sdk';
import { MockGateway } from '@kubecast/sdk/testing';
const gateway = new MockGateway();
gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' } });
const kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
const watch = kc.watch(defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' }), { namespace: 'team-a' });
watch.subscribe(() => {
  const { status, data } = watch.getSnapshot();
  if (status !== 'live') return;
  console.log(data.map(({ metadata }) => metadata.name).join());
  kc.close();
});
`;

describe.skipIf(lacking !== undefined)(`the packed package${lacking ? ` (${lacking})` : ''}`, () => {
  let dir: string;
  const app = (name: string): string => join(dir, 'app', name);

  const run = (command: string, args: readonly string[], cwd = app('.')): string => {
    const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 120_000 });
    if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? status}\n${stdout}${stderr}`);
    return stdout;
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kubecast-packed-'));
    await mkdir(app('.'));
    const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', dir], join(web, 'sdk'))) as [{ filename: string }];
    await writeFile(app('package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
    // It has no dependencies, so nothing has to be asked for.
    run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(dir, filename)]);
    // What a team has beside it.
    for (const name of ['react', 'react-dom', 'scheduler', 'vue', 'svelte', '@types/react', '@types/react-dom', '@types/node', 'undici-types', 'csstype', 'typescript']) {
      await mkdir(dirname(app(`node_modules/${name}`)), { recursive: true });
      await symlink(join(web, 'node_modules', name), app(`node_modules/${name}`));
    }
    run(app('node_modules/.bin/kubecast'), ['types', '--from', join(web, 'sdk/cli/fixtures'), '--kinds', 'jobs.batch', '--out', 'kubernetes.ts']);
    const [, page = ''] = /```tsx\n([^]*?)```/.exec(await readFile(app(join('node_modules/@kubecast/sdk', 'README.md')), 'utf8')) ?? [];
    await writeFile(app('page.tsx'), page);
    await writeFile(app('index.html'), '<!doctype html><title>Jobs</title><script type="module" src="/page.tsx"></script>');
    for (const name of ['RunningJobs.vue', 'RunningJobs.svelte']) await cp(join(web, 'sdk/examples', name), app(name));
  }, 180_000);

  afterAll(() => rm(dir, { recursive: true, force: true }));

  test('has what a package needs, and nothing of ours', () => {
    const files = run('find', ['node_modules/@kubecast/sdk', '-type', 'f']).trim().split('\n');
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/index.d.ts'].map((name) => `node_modules/@kubecast/sdk/${name}`)));
    expect(files.filter((name) => /\btest|fixtures/.test(name.replace('dist/testing/', '')))).toEqual([]);
  });

  test('runs in Node, against its own gateway in memory', async () => {
    await writeFile(app('program.js'), program);
    expect(run(process.execPath, ['program.js'])).toBe('train\n');
  });

  // The frameworks' own declarations do not pass where those of libraries are checked; ours do.
  test.each([
    { moduleResolution: 'bundler', module: 'ESNext', skipLibCheck: true, files: ['page.tsx', 'all.ts'] },
    { moduleResolution: 'nodenext', module: 'NodeNext', skipLibCheck: false, files: ['own.ts'] },
  ])('compiles at the strictest, with modules as $moduleResolution finds them', async ({ files, ...more }) => {
    const exported = (names: readonly string[]): string => names.map((name) => `export * as ${name || 'core'} from '@kubecast/sdk${name && `/${name}`}';\n`).join('');
    await writeFile(app('all.ts'), exported(['', 'react', 'vue', 'svelte', 'tabs', 'testing', 'conformance']));
    await writeFile(app('own.ts'), exported(['', 'testing', 'conformance']));
    const compilerOptions = {
      ...more,
      target: 'ES2023',
      lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
      types: ['node'],
      jsx: 'react-jsx',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      allowImportingTsExtensions: true,
      noEmit: true,
    };
    await writeFile(app('tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    expect(run(process.execPath, [app('node_modules/typescript/bin/tsc'), '-p', '.'])).toBe('');
  }, 180_000);

  test.each(['index.html', 'RunningJobs.vue', 'RunningJobs.svelte'])('is bundled by Vite: %s', async (entry) => {
    const output = await build({
      configFile: false,
      root: app('.'),
      logLevel: 'error',
      plugins: [components()],
      build: { write: false, rollupOptions: { input: app(entry), preserveEntrySignatures: 'strict' } },
    });
    const code = [output].flat().flatMap((one) => ('output' in one ? one.output.map((part) => ('code' in part ? part.code : '')) : [])).join('');
    // What is asked for is in it, the SDK where it is begun, and nothing of the mock.
    expect(['status.active', 'Last-Event-ID', 'kubecast mock'].map((words) => code.includes(words))).toEqual([true, entry === 'index.html', false]);
  }, 120_000);
});
