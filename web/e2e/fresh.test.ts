// The packed package in projects that have nothing of ours: each with what npm gives it, at the versions of its lock file.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MockGateway } from '../mock/gateway.ts';
import { blocks } from '../sdk/examples/guides.ts';
import { built, compile, pack, run, strictest, web, writePage } from './support/package.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [built]: existsSync(built) });

describe.skipIf(lacking !== undefined)(`a fresh project${lacking ? ` (${lacking})` : ''}`, () => {
  let dir: string;
  let tarball: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kubecast-fresh-'));
    tarball = pack(dir, '--ignore-scripts'); // which would make the reference
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** What `e2e/fresh/NAME` names is installed, and the package. */
  async function install(name: string): Promise<string> {
    const app = join(dir, name);
    await mkdir(app);
    for (const file of ['package.json', 'package-lock.json']) await cp(join(web, 'e2e/fresh', name, file), join(app, file));
    run('npm', ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], app);
    run('npm', ['install', '--no-save', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', tarball], app);
    return app;
  }

  describe.each(['typescript-5', 'typescript-7'])('%s', (name) => {
    let app: string;
    beforeAll(async () => {
      app = await install(name);
      await cp(join(web, 'sdk', 'README.md'), join(app, 'node_modules/@kubecast/sdk', 'README.md'));
      await writePage(app);
    });

    test('is what compiles', () => {
      expect(run(process.execPath, ['node_modules/typescript/bin/tsc', '--version'], app)).toMatch(`Version ${name.replace('typescript-', '')}.`);
    });

    test.each(strictest)('compiles it at the strictest, with modules as $moduleResolution finds them', async (rules) => {
      expect(await compile(app, rules)).toBe('');
    });

    test('finds what is wrong: its types are no `any`', async () => {
      await writeFile(join(app, 'wrong.ts'), "import { createKubecast } from '@kubecast/sdk';\nexport const kc: string = createKubecast();\n");
      const compilerOptions = { module: 'NodeNext', strict: true, noEmit: true, skipLibCheck: true, types: [] };
      await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['wrong.ts'] }));
      expect(() => run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', '.'], app)).toThrow(/TS2322: Type 'Kubecast'/);
    });
  });

  describe('next', () => {
    let app: string;
    let gateway: MockGateway;
    let server: ChildProcess | undefined;
    beforeAll(async () => {
      [app, gateway] = await Promise.all([install('next'), startGateway()]);
      for (const [name, code] of blocks) {
        const [, file] = /^ssr\/(app\/.*|running\.ts|kubernetes\.ts)$/.exec(name) ?? [];
        if (!file) continue;
        await mkdir(dirname(join(app, file)), { recursive: true });
        await writeFile(join(app, file), code);
      }
      await writeFile(join(app, 'app/layout.tsx'), "import type { ReactNode } from 'react';\n\nexport default function Layout({ children }: { children: ReactNode }) {\n  return <html lang=\"en\"><body>{children}</body></html>;\n}\n");
      // A component of the server that names what is a client's: without the condition react-server it does not build.
      await mkdir(join(app, 'app/named'));
      await writeFile(join(app, 'app/named/page.tsx'), "import { KubecastProvider } from '@kubecast/sdk/react';\n\nexport default function Page() {\n  return <p>{typeof KubecastProvider}</p>;\n}\n");
      await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true, allowImportingTsExtensions: true, noEmit: true } }));
      run(process.execPath, ['node_modules/next/dist/bin/next', 'build'], app);
    });
    afterAll(() => {
      server?.kill();
      void gateway?.stop();
    });

    async function startGateway(): Promise<MockGateway> {
      const made = new MockGateway();
      made.users.set('of-mara', {});
      await made.start();
      made.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' }, status: { active: 1 } });
      made.cluster.put('jobs', { metadata: { name: 'done', namespace: 'team-a' }, status: { succeeded: 1 } });
      return made;
    }

    test('builds the guide\'s page: its client part has what hooks need, and nothing of the mock', async () => {
      const chunks = (await readdir(join(app, '.next/static'), { recursive: true })).filter((file) => file.endsWith('.js'));
      const code = (await Promise.all(chunks.map((file) => readFile(join(app, '.next/static', file), 'utf8')))).join('');
      expect(['Last-Event-ID', 'kubecast mock', 'no KubecastProvider'].map((words) => code.includes(words))).toEqual([true, false, true]);
    });

    test('renders on the server what the user may see, whose components run under the conditions of react-server', async () => {
      server = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '--port', '0', '--hostname', '127.0.0.1'], {
        cwd: app,
        env: { ...process.env, KUBECAST_GATEWAY: gateway.url, NEXT_TELEMETRY_DISABLED: '1' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const at = await new Promise<string>((resolve, reject) => {
        server?.once('exit', (code) => reject(new Error(`next start: ${code}`)));
        if (server?.stdout) createInterface(server.stdout).on('line', (line) => {
          const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
          if (url) resolve(url);
        });
      });
      const page = async (token: string): Promise<string> => (await fetch(at, { headers: { Cookie: `token=${token}` } })).text();
      const list = (html: string): string | undefined => /<ul data-status.*?<\/ul>/.exec(html)?.[0];
      await expect.poll(async () => list(await page('of-mara'))).toMatch(/^<ul data-status="stale"><li>train<\/li><\/ul>$/);
      expect(list(await page('of-nobody'))).toBe('<ul data-status="loading"></ul>');
      expect(await (await fetch(`${at}/named`)).text()).toContain('<p>function</p>');
    });
  });
});
