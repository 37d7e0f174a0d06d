// Firefox and WebKit, as much of them as tests of the SDK need. Firefox is spoken to by WebDriver BiDi, through puppeteer; WebKit by
// WebDriver through Debian's WebKitWebDriver, which wants a display.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { launch as launchFirefox } from 'puppeteer-core';
import { vi } from 'vitest';
import { freeAddress, Program } from './processes.ts';

export interface Tab {
  /** What an expression comes to in the page. */
  evaluate<T>(expression: string): Promise<T>;
  /** Whether somebody could look at it. */
  show(visible: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface Engine {
  /** A new tab. */
  open(url: string): Promise<Tab>;
  /** All of its processes stand still, as on a machine that sleeps; or go on. */
  sleep(asleep: boolean): void;
  stop(): Promise<void>;
}

export interface Browser {
  readonly name: string;
  /** The programs that it takes. */
  readonly needs: readonly string[];
  readonly launch: () => Promise<Engine>;
}

const firefoxPath = process.env.KUBECAST_FIREFOX ?? '/usr/bin/firefox-esr';
const driverPath = process.env.KUBECAST_WEBKIT_DRIVER ?? '/usr/bin/WebKitWebDriver';
const displayPath = '/usr/bin/Xvfb';
const miniBrowserPath = ['4.1', '4.0', '6.0'].map((version) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${version}/MiniBrowser`).find(existsSync);

/** Both are groups of processes. */
const signalGroup = (pid: number | undefined, signal: NodeJS.Signals): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // it is over
  }
};

async function firefox(): Promise<Engine> {
  const browser = await launchFirefox({ browser: 'firefox', executablePath: firefoxPath, headless: true, timeout: 120_000 });
  const pid = browser.process()?.pid;
  return {
    open: async (url) => {
      const page = await browser.newPage();
      await page.goto(url);
      return {
        evaluate: <T>(expression: string) => page.evaluate(expression) as Promise<T>,
        show: async (visible) => (visible ? page : await browser.newPage()).bringToFront(),
        close: () => page.close(),
      };
    },
    sleep: (asleep) => signalGroup(pid, asleep ? 'SIGSTOP' : 'SIGCONT'),
    stop: async () => {
      signalGroup(pid, 'SIGCONT');
      await browser.close();
    },
  };
}

async function webkit(): Promise<Engine> {
  const display = new Program('Xvfb', displayPath, ['-displayfd', '1', '-nolisten', 'tcp']);
  const [number = ''] = await display.says(/^\d+$/m);
  const address = await freeAddress();
  const env = { ...process.env, DISPLAY: `:${number}`, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1', LIBGL_ALWAYS_SOFTWARE: '1' };
  const driver = spawn(driverPath, [`--host=127.0.0.1`, `--port=${address.split(':')[1]}`], { env, stdio: 'ignore', detached: true });
  const end = (): void => signalGroup(driver.pid, 'SIGKILL');
  process.once('exit', end);
  const stop = async (): Promise<void> => {
    process.off('exit', end);
    end();
    await display.stop();
  };
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(`http://${address}${path}`, { method, body: body ? JSON.stringify(body) : null });
    const { value } = (await answer.json()) as { value: T & { message?: string } };
    if (!answer.ok) throw new Error(`${method} ${path}: ${value.message ?? answer.status}`);
    return value;
  };
  try {
    await vi.waitFor(() => ask('GET', '/status'), { timeout: 60_000 });
    const options = { binary: miniBrowserPath, args: ['--automation'] };
    const { sessionId } = await ask<{ sessionId: string }>('POST', '/session', { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } } });
    const session = `/session/${sessionId}`;
    // A window is chosen, and then used: no other call may come between.
    let last: Promise<unknown> = Promise.resolve();
    const alone = <T>(what: () => Promise<T>): Promise<T> => {
      const next = last.then(what, what);
      last = next;
      return next;
    };
    let first: string | undefined = await ask<string>('GET', `${session}/window`);
    return {
      open: (url) =>
        alone(async () => {
          const handle = first ?? (await ask<{ handle: string }>('POST', `${session}/window/new`, { type: 'tab' })).handle;
          first = undefined;
          const inside = <T>(method: string, path: string, body?: object): Promise<T> =>
            alone(async () => {
              await ask('POST', `${session}/window`, { handle });
              return ask<T>(method, session + path, body);
            });
          await ask('POST', `${session}/window`, { handle });
          await ask('POST', `${session}/url`, { url });
          return {
            evaluate: <T>(expression: string) => inside<T>('POST', '/execute/sync', { script: `return ${expression}`, args: [] }),
            // No tab can be put before another, but all of them away.
            show: (visible) => (visible ? inside('POST', '/window/rect', { x: 0, y: 0, width: 1024, height: 768 }) : inside('POST', '/window/minimize', {})),
            close: () => inside('DELETE', '/window'),
          };
        }),
      sleep: (asleep) => signalGroup(driver.pid, asleep ? 'SIGSTOP' : 'SIGCONT'),
      stop: async () => {
        signalGroup(driver.pid, 'SIGCONT');
        await ask('DELETE', session).catch(() => undefined);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export const browsers: readonly Browser[] = [
  { name: 'Firefox', needs: [firefoxPath], launch: firefox },
  { name: 'WebKit', needs: [driverPath, displayPath, miniBrowserPath ?? 'MiniBrowser'], launch: webkit },
];
