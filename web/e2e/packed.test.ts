// The package as others get it: packed, looked at by those who look at packages, installed in an empty folder, used from Node, compiled by strict
// rules of others, and bundled.

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { components } from '../sdk/examples/compile.ts';
import { built, compile, entries, manifest, run as runIn, strictest, web, writePage } from './support/package.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [built]: existsSync(built) });
/** Of the release that is packed. */
const version = '1.4.0-rc.1';

/** Over a cut, by the runtime's own network. */
const program = `
import { createKubecast, defineResource } from '@kubecast/sdk';
import { MockGateway } from '@kubecast/sdk/testing';
const gateway = new MockGateway();
await gateway.start();
const put = (name) => gateway.cluster.put('jobs', { metadata: { name, namespace: 'team-a' } });
put('train');
const kc = createKubecast({ gateway: gateway.url, token: () => 'let-me-in' });
const watch = kc.watch(defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' }), { namespace: 'team-a' });
let cut = false;
watch.subscribe(() => {
  const { status, data } = watch.getSnapshot();
  if (status !== 'live') return;
  if (cut && data.length === 2) {
    console.log(data.map(({ metadata }) => metadata.name).join());
    kc.close();
    gateway.stop();
  } else if (!cut) {
    cut = true;
    gateway.cutAll();
    put('eval');
  }
});
`;
/** By the arguments that come before a program. Node is the oldest that is taken, where these tests run in it. */
const runtimes: Record<string, readonly string[]> = {
  Node: [process.execPath],
  Deno: [join(web, 'node_modules/.bin/deno'), 'run', '--quiet', '--no-lock', '--allow-net', '--allow-env'],
  Bun: [join(web, 'node_modules/.bin/bun'), 'run'],
};

describe.skipIf(lacking !== undefined)(`the packed package${lacking ? ` (${lacking})` : ''}`, () => {
  let dir: string;
  let tarball: string;
  const app = (name: string): string => join(dir, 'app', name);

  const run = (command: string, args: readonly string[], cwd = app('.')): string => runIn(command, args, cwd);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kubecast-packed-'));
    await mkdir(app('.'));
    // As a release publishes it. Once: its reference is made of all types, which costs more than anything else here.
    tarball = join(dir, run(join(web, '../scripts/npm.sh'), [version, dir, 'sdk']).trim());
    await writeFile(app('package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
    // It has no dependencies, so nothing has to be asked for.
    run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball]);
    // What a team has beside it.
    for (const name of ['react', 'react-dom', 'scheduler', 'vue', 'svelte', 'solid-js', 'idb', '@types/react', '@types/react-dom', '@types/node', 'undici-types', 'csstype', 'typescript', '@tanstack/db', '@tanstack/query-core']) {
      await mkdir(dirname(app(`node_modules/${name}`)), { recursive: true });
      await symlink(join(web, 'node_modules', name), app(`node_modules/${name}`));
    }
    await writePage(app('.'));
    await writeFile(app('index.html'), '<!doctype html><title>Jobs</title><script type="module" src="/page.tsx"></script>');
    for (const name of ['RunningJobs.vue', 'RunningJobs.svelte']) await cp(join(web, 'sdk/examples', name), app(name));
  });

  afterAll(() => rm(dir, { recursive: true, force: true }));

  test('has what a package needs, and nothing of ours', () => {
    const files = run('find', ['node_modules/@kubecast/sdk', '-type', 'f']).trim().split('\n');
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/index.d.ts', ...['guides/testing', 'CHANGELOG', 'conformance'].map((name) => `dist/docs/${name}.md`)].map((name) => `node_modules/@kubecast/sdk/${name}`)));
    expect(files.filter((name) => !name.includes('/dist/docs/') && /\btest|fixtures/.test(name.replace('dist/testing/', '')))).toEqual([]);
  });

  // npm shows the README, from which what is relative would lead nowhere; the other documents are read where the package is.
  test('links of its documents lead where they are to be read', async () => {
    const released = app('node_modules/@kubecast/sdk');
    const documents = ['README.md', ...run('find', ['dist/docs', '-name', '*.md'], released).trim().split('\n')];
    const links = await Promise.all(documents.map(async (name) => [...(await readFile(join(released, name), 'utf8')).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)].map(([, link = '']) => ({ name, link }))));
    const code = 'https://github.com/kubecast/kubecast/blob/main/';
    const lost = links.flat().filter(({ name, link }) => {
      if (link.startsWith(code)) return !existsSync(join(web, '..', link.slice(code.length)));
      return !/^[a-z]+:/.test(link) && (name === 'README.md' || !existsSync(join(released, dirname(name), link)));
    });
    expect(links.flat().length).toBeGreaterThan(30);
    expect(lost).toEqual([]);
    expect(existsSync(join(released, 'LICENSE'))).toBe(true);
  });

  test('has a map with its sources for each module, so that whoever debugs a page sees what we wrote', async () => {
    const modules = run('find', ['node_modules/@kubecast/sdk/dist', '-name', '*.js']).trim().split('\n');
    const lacks = async (name: string): Promise<boolean> => {
      const map = await readFile(app(`${name}.map`), 'utf8').catch(() => '{}');
      const { sourcesContent } = JSON.parse(map) as { sourcesContent?: readonly string[] };
      return !sourcesContent?.every((source) => source !== '');
    };
    const lacking = await Promise.all(modules.map(async (name) => ((await lacks(name)) ? [name] : [])));
    expect(modules.length).toBeGreaterThan(50);
    expect(lacking.flat()).toEqual([]);
  });

  test('publint finds nothing', async () => {
    const { messages, pkg } = await publint({ pkgDir: app('node_modules/@kubecast/sdk'), pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  // What it says of CommonJS: docs/decisions/operation-and-development.md, "The SDK is published as modules only".
  test('types are found as the code is, by bundlers and by Node, and CommonJS gets modules', async () => {
    const { problems = [] } = (await checkPackage(createPackageFromTarballData(new Uint8Array(await readFile(tarball))))) as {
      problems?: readonly { kind: string; entrypoint?: string; resolutionKind?: string }[];
    };
    const told = problems.filter(({ resolutionKind }) => resolutionKind !== 'node10');
    expect(told.map(({ kind, entrypoint, resolutionKind }) => `${kind} ${entrypoint} ${resolutionKind}`).sort()).toEqual(
      entries.map((entry) => `CJSResolvesToESM ${entry} node16-cjs`).sort(),
    );
  });

  test('a program in CommonJS can require each entry, and has the same one as a module has', async () => {
    await writeFile(
      app('program.cjs'),
      `const entries = ${JSON.stringify(entries)}.map((entry) => '@kubecast/sdk' + entry.slice(1));
      Promise.all(entries.map(async (entry) => {
        const required = require(entry);
        const imported = await import(entry);
        const names = Object.keys(imported);
        if (names.length === 0 || names.some((name) => required[name] !== imported[name])) console.log(entry);
      })).then(() => console.log(entries.length, require('@kubecast/sdk/package.json').name));`,
    );
    expect(run(process.execPath, ['program.cjs'])).toBe(`${entries.length} @kubecast/sdk\n`);
  });

  test('could be published as it is', () => {
    const { status, stdout, stderr } = spawnSync('npm', ['publish', '--dry-run', '--offline', '--json', '--tag', 'test', tarball], { cwd: app('.'), encoding: 'utf8' });
    expect(stderr).not.toMatch(/corrected|npm error/);
    expect(stdout).toContain(`"id": "${manifest.name}@${version}"`);
    expect(status).toBe(0);
  });

  test('is not published from its folder, whose version is none of a release', () => {
    const publish = (dryRun: string) =>
      spawnSync('npm', ['run', 'prepublishOnly'], { cwd: join(web, 'sdk'), encoding: 'utf8', env: { ...process.env, npm_config_dry_run: dryRun } });
    expect(publish('true').status).toBe(0);
    expect(publish('').status).toBe(1);
    expect(publish('').stderr).toContain('A release publishes the file');
  });

  test.each(Object.entries(runtimes))('runs in %s, over a stream that is cut', async (_, [command = '', ...args]) => {
    await writeFile(app('program.js'), program);
    expect(run(command, [...args, 'program.js'])).toBe('train,eval\n');
  });

  test.each(strictest)('compiles at the strictest, with modules as $moduleResolution finds them', async (rules) => {
    expect(await compile(app('.'), rules)).toBe('');
  });

  test.each(['index.html', 'RunningJobs.vue', 'RunningJobs.svelte'])('is bundled by Vite: %s', async (entry) => {
    const warnings: string[] = [];
    // That a machine is slow is no fault of the package.
    const onwarn = ({ code, message }: { readonly code?: string; readonly message: string }): unknown => code !== 'PLUGIN_TIMINGS' && warnings.push(message);
    const output = await build({
      configFile: false,
      root: app('.'),
      logLevel: 'error',
      plugins: [components()],
      build: { write: false, rollupOptions: { input: app(entry), preserveEntrySignatures: 'strict', onwarn } },
    });
    expect(warnings).toEqual([]);
    const code = [output].flat().flatMap((one) => ('output' in one ? one.output.map((part) => ('code' in part ? part.code : '')) : [])).join('');
    // What is asked for is in it, the SDK where it is begun, and nothing of the mock.
    expect(['status.active', 'Last-Event-ID', 'kubecast mock'].map((words) => code.includes(words))).toEqual([true, entry === 'index.html', false]);
  });

  describe('what npm create kubecast makes', () => {
    const create = (...args: readonly string[]) => spawnSync(join(dir, 'creator/node_modules/.bin/create-kubecast'), args, { cwd: dir, encoding: 'utf8' });

    test('is of the release, is built and passes its own tests, and what is there is left alone', { timeout: 300_000 }, async () => {
      const made = join(dir, 'Über Jobs');
      // As a release packs it, which also asks npm whether it would be taken.
      const packed = run(join(web, '../scripts/npm.sh'), [version, dir, 'create']).trim();
      expect(packed).toBe(`create-kubecast-${version}.tgz`);
      run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--prefix', join(dir, 'creator'), join(dir, packed)]);
      expect(existsSync(join(dir, 'creator/node_modules/create-kubecast/LICENSE'))).toBe(true);
      expect(create('Über Jobs')).toMatchObject({ status: 0, stderr: '' });
      expect(JSON.parse(await readFile(join(made, 'package.json'), 'utf8'))).toMatchObject({ name: 'ber-jobs', private: true, dependencies: { '@kubecast/sdk': `^${version}` } });
      expect(await readFile(join(made, '.gitignore'), 'utf8')).toContain('node_modules');
      // In place of npm install, which would ask the registry: what is here, and the packed SDK.
      await mkdir(join(made, 'node_modules/@kubecast'), { recursive: true });
      await symlink(app('node_modules/@kubecast/sdk'), join(made, 'node_modules/@kubecast/sdk'));
      for (const name of ['react', 'react-dom', 'scheduler', '@types/react', '@types/react-dom', 'csstype', 'happy-dom', 'jsdom', 'typescript', 'vite', 'vitest']) {
        await mkdir(dirname(join(made, 'node_modules', name)), { recursive: true });
        await symlink(join(web, 'node_modules', name), join(made, 'node_modules', name));
      }
      run(process.execPath, [join(web, 'node_modules/typescript/bin/tsc')], made);
      run(process.execPath, [join(web, 'node_modules/vite/bin/vite.js'), 'build'], made);
      for (const dom of ['happy-dom', 'jsdom']) expect(run(process.execPath, [join(web, 'node_modules/vitest/vitest.mjs'), 'run', '--no-color', '--testTimeout', '60000', '--environment', dom], made)).toMatch(/Tests\s+3 passed/);

      expect(create('Über Jobs')).toMatchObject({ status: 1, stderr: expect.stringMatching(/is not empty\n$/) as string });
      expect(create()).toMatchObject({ status: 1, stderr: expect.stringContaining('usage') as string });
      expect(create('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('usage') as string });
    });
  });
});
