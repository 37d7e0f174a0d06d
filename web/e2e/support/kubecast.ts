// A real control plane and a real gateway, in a temporary folder and on free ports.

import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gateway, gatewayPath, hasGateway } from './gateway.ts';
import { Line } from './line.ts';
import { freeAddress, Program } from './processes.ts';

export { gatewayPath };
export const devclusterPath = process.env.KUBECAST_DEVCLUSTER_BIN ?? fileURLToPath(new URL('../../../bin/devcluster', import.meta.url));
export const hasBinaries = hasGateway && existsSync(devclusterPath);

export interface JobOptions {
  /** Seconds until its pods are ready, and for how long they run then. */
  readonly start: number;
  readonly run: number;
  readonly owner?: string;
  /** How many there are at once; 1 by default. */
  readonly pods?: number;
  /** What each of its pods requests. */
  readonly requests?: Readonly<Record<string, string>>;
  /** Its pods have ranks; each runs out of memory, and none is tried again. */
  readonly outOfMemory?: boolean;
  /** What controls it. */
  readonly of?: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
}

/** What the gateway is configured with beside a key for development. */
export interface AuthOptions {
  readonly jwt: readonly object[];
  readonly oidcLogin: object;
}

export class Kubecast {
  readonly #dir: string;
  readonly #cluster: Program;
  readonly #gateway: Gateway;
  #line: Line | undefined;

  /** `auth` is told the gateway's address. */
  static async start(jobsPerSecond = 0, auth?: (url: string) => Promise<AuthOptions>): Promise<Kubecast> {
    const dir = await mkdtemp(join(tmpdir(), 'kubecast-web-e2e-'));
    const cluster = new Program('devcluster', devclusterPath, ['up', '--dir', join(dir, 'cluster'), '--nodes', '10', '--jobs', String(jobsPerSecond)]);
    const kubecast = new Kubecast(dir, cluster, new Gateway(dir, await freeAddress()));
    try {
      const more = await auth?.(kubecast.url);
      await cluster.says(/^ready$/m, 180_000);
      await kubecast.#layLine();
      const issuer = await kubecast.#gateway.issuer();
      // A short retry, or the tests would mostly wait.
      await kubecast.#gateway.write({ auth: { ...more, jwt: [issuer, ...(more?.jwt ?? [])] }, stream: { retry: '500ms' }, history: { stateDir: dir } });
      await kubecast.startGateway();
    } catch (error) {
      await kubecast.stop();
      throw error;
    }
    return kubecast;
  }

  private constructor(dir: string, cluster: Program, gateway: Gateway) {
    this.#dir = dir;
    this.#cluster = cluster;
    this.#gateway = gateway;
  }

  /** Where the gateway keeps its history. */
  get stateDir(): string {
    return this.#dir;
  }

  get url(): string {
    return this.#gateway.url;
  }

  /** From now on the gateway speaks TLS, with the certificate of the API server, which is for loopback, too. */
  async speakTLS(): Promise<void> {
    const pki = (name: string): string => join(this.#dir, 'cluster', 'pki', name);
    this.#gateway.scheme = 'https';
    await this.configure({ tls: { certFile: pki('apiserver.crt'), keyFile: pki('apiserver.key') } });
  }

  /** Starts the gateway anew with these sections of its configuration, and the others as they were. */
  async configure(sections: object): Promise<void> {
    await this.#gateway.stop();
    await this.#gateway.write(sections);
    await this.#gateway.start();
  }

  /** The gateway's line to the API server. */
  get line(): Line {
    if (!this.#line) throw new Error('there is no cluster yet');
    return this.#line;
  }

  async #layLine(): Promise<void> {
    const config = await readFile(join(this.#dir, 'cluster', 'kubeconfig'), 'utf8');
    const [, target = ''] = /server: https:\/\/(\S+)/.exec(config) ?? [];
    this.#line = await Line.to(target);
    await writeFile(join(this.#dir, 'kubeconfig'), config.replace(target, this.#line.address));
  }

  /** Listens where it did before, if it did. */
  startGateway(): Promise<void> {
    return this.#gateway.start();
  }

  killGateway(): Promise<void> {
    return this.#gateway.kill();
  }

  /** `groups`: `platform` sees all of the cluster, the name of a team its namespace. */
  token(user: string, groups: readonly string[] = [], ttl = '1h'): Promise<string> {
    return this.#gateway.token(user, groups, ttl);
  }

  kubectl(args: readonly string[], input = ''): Promise<string> {
    return new Program('kubectl', devclusterPath, ['kubectl', '--dir', join(this.#dir, 'cluster'), ...args], input).result();
  }

  /** Asks the API server as its admin, and returns what it answers. */
  async api(method: string, path: string, body?: object, type = 'application/json'): Promise<unknown> {
    const config = await readFile(join(this.#dir, 'cluster', 'kubeconfig'), 'utf8');
    const said = (key: string): string => new RegExp(`${key}: (\\S+)`).exec(config)?.[1] ?? '';
    const headers = { Authorization: `Bearer ${said('token')}`, 'Content-Type': type };
    const ca = Buffer.from(said('certificate-authority-data'), 'base64');
    return new Promise((resolve, reject) => {
      const asked = request(said('server') + path, { method, headers, ca }, (response) => {
        let text = '';
        response.on('data', (part: Buffer) => (text += part.toString()));
        response.on('end', () => {
          if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        });
      });
      asked.on('error', reject);
      asked.end(body && JSON.stringify(body));
    });
  }

  /** Runs a line as a user would in their shell, where `kubectl` is the cluster's. */
  shell(line: string): Promise<string> {
    const kubectl = `kubectl() { ${devclusterPath} kubectl --dir ${join(this.#dir, 'cluster')} "$@"; }`;
    return new Program('bash', 'bash', ['-o', 'pipefail', '-c', `${kubectl}; ${line}`]).result();
  }

  async submit(namespace: string, name: string, { start, run, owner = 'mara.lindqvist', pods = 1, requests, outOfMemory = false, of }: JobOptions): Promise<void> {
    const annotations = {
      'devcluster.kubecast.io/start-seconds': String(start), 'devcluster.kubecast.io/run-seconds': String(run),
      ...(outOfMemory && { 'devcluster.kubecast.io/fail-percent': '100', 'devcluster.kubecast.io/fail-reason': 'OOMKilled' }),
    };
    const labels = { 'kubecast.io/owner': owner };
    const container = { name: 'main', image: 'example.org/train:1', ...(requests && { resources: { requests } }) };
    const job = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace, labels, ...(of && { ownerReferences: [{ ...of, controller: true }] }) },
      spec: { parallelism: pods, completions: pods, ...(outOfMemory && { backoffLimit: 0, completionMode: 'Indexed' }), template: { metadata: { annotations, labels }, spec: { restartPolicy: 'Never', containers: [container] } } },
    };
    await this.kubectl(['create', '-f', '-'], JSON.stringify(job));
  }

  /** The pods of a job that was submitted start now, or end now, whatever it said: as soon as a test has seen what was before. */
  async now(what: 'start' | 'end', namespace: string, job: string): Promise<void> {
    const annotation = `devcluster.kubecast.io/${what === 'start' ? 'start' : 'run'}-seconds=0`;
    await this.kubectl(['annotate', '--overwrite', 'pods', '--namespace', namespace, '--selector', `batch.kubernetes.io/job-name=${job}`, annotation]);
  }

  async waitComplete(namespace: string, name: string): Promise<void> {
    await this.kubectl(['wait', '--namespace', namespace, '--for=condition=complete', `job/${name}`, '--timeout=120s']);
  }

  async stop(): Promise<void> {
    await this.#gateway.stop();
    await this.#line?.cut();
    await this.#cluster.stop();
    await rm(this.#dir, { recursive: true, force: true });
  }
}
