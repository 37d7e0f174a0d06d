// A gateway to develop and test against: it speaks the wire contract, refuses what it lacks of it (contract.ts), and misbehaves on request.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KubeObject } from '@kubecast/sdk';
import { bodyOf } from './body.ts';
import { MockCluster } from './cluster.ts';
import { addressOf, inDefaultCluster, lackOf, methodsAt, type Found } from './contract.ts';
import { documentAt, idOf, tagOf } from './documents.ts';
import { MockFaults } from './fault.ts';
import { formOf, type Column } from './forms.ts';
import { changeInbox, inboxPage, inboxWatch, settingsOf, viewOf } from './inbox.ts';
import { MockLists } from './lists.ts';
import { forOrigins } from './origins.ts';
import { OwnWatch } from './ownwatch.ts';
import { MockLogs, type LogsOf } from './logs.ts';
import { answerView } from './logviews.ts';
import { inMemory, type MockRequest, type MockResponse } from './memory.ts';
import type { MockPast, PastAsker } from './past.ts';
import { answerLog, answerText } from './podlog.ts';
import { Port } from './port.ts';
import { asksNumbers, asksStatus, BadQuery, heartbeatOf, notFound, queryOfStream, reserved, whole } from './query.ts';
import { MockQueues } from './queues.ts';
import { answer, refuse, refuseAs } from './reply.ts';
import { derivesStatus } from './status.ts';
import { maySee, meOf, reviewed, rulesOf, type MockUser } from './rights.ts';
import { Sessions } from './sessions.ts';
import { MockStream, sightOf, type StreamOptions, type ToldWatch, type Watch } from './stream.ts';
import { Tickets } from './tickets.ts';
import type { InboxView, MockInbox, ToldQueue } from './told.ts';

/** What a request for anything but a stream is answered with, for the portal's own files. */
export type Fallback = (request: IncomingMessage, response: ServerResponse) => void;

/** Who asks. */
interface Caller {
  readonly token: string;
  readonly user: MockUser;
  readonly username: string;
}

/** What was asked, without the name of the cluster. */
interface Asked {
  readonly request: MockRequest;
  readonly response: MockResponse;
  readonly url: URL;
  readonly path: string;
  readonly found: Found;
}

export class MockGateway {
  readonly cluster = new MockCluster();
  /** What containers write: `gateway.logs.write('train-0', 'epoch 1')`. */
  readonly logs = new MockLogs(this.cluster);
  /** What goes wrong: `gateway.fault.cut()`. */
  readonly fault = new MockFaults(this);
  /** By token. Whoever is missing gets 401. */
  readonly users = new Map<string, MockUser>([['let-me-in', {}]]);
  readonly streams = new Set<MockStream>();
  /** The watches in the form of Kubernetes. */
  readonly watches = new Set<OwnWatch>();
  /** Each request for a stream, as it came. */
  readonly requests: { readonly url: string; readonly lastEventId: string; readonly token: string }[] = [];
  epoch = 'e1';
  retry = 10;
  heartbeat = 15_000;
  sabotage: StreamOptions['sabotage'];
  /** Lets every stream in, and says goodbye at once: as a gateway that has never read its cluster. */
  unavailable = false;
  /** What is read of the history and of the notifications, whoever asks; undefined: there is none. */
  inbox: MockInbox | undefined;
  /** The history's database is away: streams that have something of it end at once. */
  pastAway = false;
  /** The origins of the pages elsewhere that may call, as `cors.origins` of the gateway; undefined: each may. */
  origins: ReadonlySet<string> | undefined;
  /** The kinds that are served, as `jobs.batch`; undefined: any that is asked for. */
  kinds: ReadonlySet<string> | undefined;
  /** The columns of a kind's tables, beside the name and the age. */
  readonly columns = new Map<string, readonly Column[]>();
  fallback: Fallback | undefined;
  /** Answers every stream with this status instead, while it is set. */
  refuseWith: { readonly status: number; readonly headers?: Record<string, string> } | undefined;
  /** In memory: nobody answers. */
  away = false;
  /** Asks it without a network. Addresses may begin with its paths. */
  readonly fetch = inMemory((request, response) => {
    if (this.away) response.socket?.destroy();
    else this.handle(request, response);
  });
  readonly #queues = new MockQueues();
  readonly #lists = new MockLists();
  readonly #tickets = new Tickets();
  readonly #sessions = new Sessions(() => this.origins);
  #past: MockPast | undefined;
  readonly #port = new Port((request, response) => this.handle(request, response, () => this.#fallBack(request, response)));

  get past(): MockPast | undefined {
    return this.#past;
  }

  set past(past: MockPast | undefined) {
    this.#past = past;
    past?.knows(this.cluster);
  }

  get url(): string {
    return this.#port.url;
  }

  /**
   * Listens on a port of loopback, for a page in a browser: `await gateway.start(8080)`, and `createKubecast({ gateway: gateway.url, … })`. After {@link stop}
   * again on the same port. Without one it takes a free one, which {@link url} names.
   */
  start(port?: number): Promise<void> {
    return this.#port.open(port);
  }

  /** As SIGKILL would: every connection breaks, the port is closed. */
  async stop(): Promise<void> {
    const closed = this.#port.close();
    this.cutAll();
    await closed;
  }

  cutAll(): void {
    for (const one of [...this.streams, ...this.watches]) one.cut();
  }

  /** A queue is there, or has changed. Before the first there are none, as on a cluster without Kueue. */
  queue(queue: ToldQueue): void {
    this.#queues.put(queue);
  }

  /** Lets a user in, or what they may see is something else from now on: at once also on their streams. Undefined: nobody any more. */
  permit(token: string, user: MockUser | undefined): void {
    if (user) this.users.set(token, user);
    else this.users.delete(token);
    for (const watch of this.watches) if (watch.token === token) watch.expire('what may be seen has changed');
    for (const stream of this.streams) {
      if (stream.token !== token) continue;
      const lost = ({ id, told }: Watch): boolean => user !== undefined && ((id !== undefined && !maySee(user, id)) || told?.allows?.(user) === false);
      if (!user || stream.watches.some(lost)) stream.goodbye('revoked');
      else stream.see(user.namespaces, user.kinds);
    }
  }

  /** Usable as a middleware; `next` gets what is nothing of the gateway's. */
  handle(request: MockRequest, answered: MockResponse, next?: () => void): void {
    const url = new URL(request.url ?? '/', 'http://gateway');
    const path = inDefaultCluster(url.pathname);
    const method = request.method ?? 'GET';
    const methods = methodsAt(path ?? '');
    const response = forOrigins(this.origins, methods, request, this.fault.delayed(answered));
    if (path === undefined) {
      refuse(request, response, 404, 'there is no such cluster');
      return;
    }
    const found = addressOf(method === 'HEAD' || method === 'OPTIONS' ? 'GET' : method, path);
    if (!found && next) next();
    else if (!found) refuse(request, response, 404, 'nothing is here');
    else if (method === 'OPTIONS') response.writeHead(204, { Allow: methods }).end();
    else if (found === 'other') refuse(request, response, 405, 'nothing is written through the gateway', { Allow: methods });
    else if (Object.keys(request.headers).some((name) => name.startsWith('impersonate-'))) refuse(request, response, 400, 'the gateway impersonates nobody');
    else {
      try {
        this.#answer({ request, response, url, path, found });
      } catch (error) {
        if (!(error instanceof BadQuery)) throw error;
        refuseAs(request, response, error);
      }
    }
  }

  #answer(asked: Asked): void {
    const { request, response, url, path, found } = asked;
    const { part } = found.address;
    const streams = String(request.headers.accept ?? '').includes('text/event-stream');
    if (part === 'stream' || (streams && ['objects', 'history', 'queues', 'inbox', 'logs', 'none'].includes(part))) {
      this.#stream(asked);
      return;
    }
    const { refused } = this.fault;
    if (refused) throw new BadQuery(refused.detail, refused.status, {}, refused.retryAfter);
    const lack = lackOf(found.address, url.searchParams);
    if (lack) throw new BadQuery(lack, 501);
    if (part === 'session') {
      this.#sessions.answer(request, response, path, () => this.#caller(request, url), (token) => this.#usernameOf(token));
      return;
    }
    const caller = this.#caller(request, url);
    if (part === 'objects') this.#list(asked, caller);
    else if (part === 'document') this.#document(asked);
    else if (part === 'health') response.writeHead(200, { 'Content-Type': 'text/plain' }).end('ok');
    else if (part === 'review') this.#review(asked, caller);
    else if (part === 'log') this.#log(asked, caller);
    else if (part === 'logs') this.#logsAsText(asked, caller);
    else if (part === 'history') this.#history(asked, caller);
    else if (part === 'queues') answer(response, 200, this.#queues.answer(path, url.searchParams, caller.user));
    else if (part === 'inbox') this.#notifications(asked, caller);
    else if (part === 'clusters') answer(response, 200, { clusters: [this.#described(caller)] });
    else if (part === 'me') answer(response, 200, meOf(caller.user, caller.username, url.searchParams.get('kinds'), [...this.cluster.kinds.values()]));
    else this.#tickets.give(request, response, caller.token);
  }

  #caller(request: MockRequest, url: URL): Caller {
    const ticket = url.searchParams.get('ticket');
    const token = tokenOf(request) || this.#sessions.of(request)?.token || (ticket === null ? '' : (this.#tickets.take(ticket, url) ?? ''));
    const user = this.#userOf(token);
    if (!user) throw new BadQuery('the token is not valid', 401);
    return { token, user, username: user.username ?? usernameOf(token) };
  }

  /** Whose token it is, as long as it is good. */
  #userOf(token: string): MockUser | undefined {
    const user = this.users.get(token);
    return user && (user.expiresAt ?? Infinity) > Date.now() ? user : undefined;
  }

  #usernameOf(token: string): string | undefined {
    const user = this.#userOf(token);
    return user && (user.username ?? usernameOf(token));
  }

  #stream({ request, response, url, path, found }: Asked): void {
    const multiple = found.address.part === 'stream';
    const lastEventId = String(request.headers['last-event-id'] ?? url.searchParams.get('lastEventId') ?? url.searchParams.get('last_event_id') ?? '');
    const token = tokenOf(request);
    this.requests.push({ url: request.url ?? '', lastEventId, token });
    if (this.refuseWith) {
      const { status, headers } = this.refuseWith;
      refuse(request, response, status, 'refused by the test', headers);
      return;
    }
    const caller = this.#caller(request, url);
    const asked: [string, string][] = multiple ? [...url.searchParams].filter(([name]) => !reserved.has(name)) : [['', path + url.search]];
    const misnamed = multiple && [...url.searchParams].find(([name, value]) => reserved.has(name) && value.startsWith('/'));
    if (misnamed) throw new BadQuery(`${misnamed[0]} is the name of a parameter`);
    if (asked.length === 0) throw new BadQuery('there is no watch');
    if (asked.length > 32) throw new BadQuery('a stream has at most 32 watches');
    const defaults = multiple ? new URLSearchParams([...url.searchParams].filter(([key]) => reserved.has(key))) : new URLSearchParams();
    const watches = asked.map(([name, at]) => this.#watchOf(name, at, defaults, caller));
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end();
      return;
    }
    if (lastEventId.startsWith(`${this.epoch}.`) && watches.every(({ told }) => told?.ends)) {
      response.writeHead(204, {}).end(); // all of it was told, which ends an EventSource
      return;
    }
    const { retry, sabotage } = this;
    const heartbeat = Math.min(this.heartbeat, heartbeatOf(url.searchParams.get('heartbeat')) ?? Infinity);
    const stream = new MockStream(this.cluster, this.epoch, sightOf(caller.user.namespaces, caller.user.kinds), watches, response, { retry, heartbeat, sabotage, token: caller.token, expiresAt: caller.user.expiresAt });
    this.streams.add(stream);
    response.on('close', () => this.streams.delete(stream));
    const { refused, staleSince } = this.fault;
    if (refused) stream.goodbye(refused.reason, lastEventId);
    else if (this.unavailable || (this.pastAway && watches.some(({ told }) => told && !told.log.whole))) stream.goodbye('unavailable', lastEventId);
    else stream.begin(lastEventId);
    if (staleSince) stream.freshness('stale', staleSince);
  }

  /** Throws {@link BadQuery}, also where there is no such thing. */
  #watchOf(name: string, at: string, defaults: URLSearchParams, caller: Caller): Watch {
    const { pathname, searchParams: own } = new URL(at, 'http://gateway');
    const path = inDefaultCluster(pathname);
    const found = path === undefined ? undefined : addressOf('GET', path);
    const nothing = new BadQuery(`nothing is served at ${pathname}`, 404);
    if (!found || found === 'other' || path === undefined) throw nothing;
    const { address, named } = found;
    own.delete('ticket');
    const rest = { name, resource: path, namespace: undefined, visible: undefined, version: undefined };
    switch (address.part) {
      case 'objects':
        return this.#objectsAt(name, path, own, defaults, caller, named);
      case 'logs':
        return { ...rest, visible: named.namespace ? undefined : caller.user.namespaces, told: { ...this.logs.follow(own, this.#logsOf(path, caller, named)), allows: (user) => user.logs !== false && maySee(user, 'pods', named.namespace) } };
      case 'history':
        return { ...rest, told: this.#followed(own, caller, named) };
      case 'queues':
        return { ...rest, told: this.#queues.follow(path, own, caller.user) };
      case 'inbox':
        if (path !== '/notifications') throw nothing;
        return { ...rest, told: inboxWatch(this.#inboxOf(caller), own, this.#viewOf(caller)) };
      default:
        // Of several watches a client finds out which one it is by 4xx.
        throw address.lacks?.[''] ? new BadQuery(address.lacks[''], 404) : nothing;
    }
  }

  #objectsAt(name: string, path: string, own: URLSearchParams, defaults: URLSearchParams, { user }: Caller, named: Found['named']): Watch {
    const { group = '', resource = '', namespace, name: object } = named;
    const id = idOf({ group, plural: resource });
    if (!this.#serves(id)) throw new BadQuery(`no kind is served at ${path}`, 404);
    if (!maySee(user, id, namespace)) throw new BadQuery(`you may not watch ${resource} ${namespace ? `in the namespace ${namespace}` : 'at the cluster scope'}`, 403);
    // These make a watch another stream, so they stand in its own query only.
    const common = [...defaults].filter(([key]) => !own.has(key) && !['countBy', 'limit', 'sort', 'offset', 'ticket'].includes(key));
    const asked = new URLSearchParams([...own, ...common]);
    this.#knowsStatus(id, asked, 404); // of several watches a client finds out which one it is by 4xx
    const query = queryOfStream(asked);
    if (object !== undefined && (query.page ?? query.counts)) throw new BadQuery('a page and counts are of lists');
    return { name, id, resource, group, namespace, object, query, visible: namespace ? undefined : user.namespaces, version: undefined };
  }

  #followed(query: URLSearchParams, caller: Caller, named: Found['named']): ToldWatch {
    const { past, asker } = this.#pastOf(caller, named);
    const limit = whole('limit', query.get('limit') ?? '100', 0, 1_000);
    heartbeatOf(query.get('heartbeat'));
    for (const key of positions) query.delete(key);
    return { ...past.follow(query, asker), limit, mark: 'h-', allows: (user) => maySee(user, asker.resource ?? '', asker.namespace) };
  }

  /** A list, a page of it, counts, or one object. */
  #list({ request, response, url, path, found }: Asked, { user, token }: Caller): void {
    const { group = '', resource = '', namespace, name } = found.named;
    const id = idOf({ group, plural: resource });
    if (!this.#serves(id)) throw new BadQuery(`no kind is served at ${path}`, 404);
    if (!maySee(user, id, namespace)) throw new BadQuery(`you may not list ${id} there`, 403);
    const form = formOf(String(request.headers.accept ?? ''));
    if (!form) throw new BadQuery('none of the forms in Accept can be answered', 406);
    this.#knowsStatus(id, url.searchParams, 501);
    const { namespaces } = user;
    const isBelow = ({ metadata }: KubeObject): boolean => (!namespace || metadata.namespace === namespace) && (name === undefined || metadata.name === name) && (!namespaces || namespaces.includes(metadata.namespace ?? ''));
    if (['true', '1'].includes(url.searchParams.get('watch') ?? '')) {
      const watch = new OwnWatch(this.cluster, { resource, group, below: isBelow, form, columns: this.columns.get(id) ?? [] }, url.searchParams, response, token);
      this.watches.add(watch);
      response.on('close', () => this.watches.delete(watch));
      return;
    }
    const below = this.cluster.list(resource, group).filter(isBelow);
    const answered = this.#lists.answer(below, { one: name, form, columns: this.columns.get(id) ?? [], now: this.cluster.version }, url.searchParams, this.cluster.floor);
    if (answered.status === 404) throw new BadQuery(`${id} "${name}" not found`, 404);
    const headers: Record<string, string> = answered.tag === undefined ? {} : { ETag: answered.tag };
    if (answered.tag !== undefined && request.headers['if-none-match'] === answered.tag) response.writeHead(304, headers).end();
    else answer(response, answered.status, answered.body, headers);
  }

  /** Whose logs are at a path, if the caller may read them. */
  #logsOf(path: string, { user, token }: Caller, { group, resource, namespace, name }: Found['named']): LogsOf {
    const isOwner = resource !== undefined && name !== undefined && !(group === undefined && resource === 'pods');
    if (user.logs === false || !maySee(user, 'pods', namespace)) throw new BadQuery('you may not read logs there', 403);
    const namespaces = (): readonly string[] | undefined => (this.users.get(token) ?? user).namespaces;
    if (!isOwner) {
      return { pod: name, namespace, namespaces };
    }
    const id = idOf({ group: group ?? '', plural: resource });
    if (group === undefined && resource !== 'replicationcontrollers') throw new BadQuery(`no logs are at ${path}`, 404);
    if (!maySee(user, id, namespace)) throw new BadQuery(`you may not get ${id} there`, 403);
    // What is not there may come, and what is made anew has pods of its own.
    const owner = (): KubeObject | undefined => this.cluster.list(resource, group ?? '').find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    return { owner, namespace, namespaces };
  }

  #log({ response, url, found }: Asked, { user }: Caller): void {
    const { namespace = '', name = '' } = found.named;
    if (user.logs === false || !maySee(user, 'pods', namespace)) throw new BadQuery('you may not get pods/log there', 403);
    answerLog(this.logs, namespace, name, url.searchParams, response);
  }

  #logsAsText({ response, url, path, found }: Asked, caller: Caller): void {
    const of = this.#logsOf(path, caller, found.named);
    if (url.searchParams.has('view')) {
      answer(response, 200, answerView(this.logs, url.searchParams, of));
      return;
    }
    const told = this.logs.follow(url.searchParams, of);
    const several = of.pod === undefined || this.logs.containersOf(of.namespace ?? '', of.pod).length > 1;
    answerText(this.logs, told, several, response);
  }

  #document({ request, response, path }: Asked): void {
    const accept = String(request.headers.accept ?? '');
    const aggregated = accept.includes('as=APIGroupDiscoveryList');
    if (!aggregated && formOf(accept) !== 'whole') throw new BadQuery('none of the forms in Accept can be answered', 406);
    const said = documentAt(this.cluster, path, aggregated);
    if (!said) throw new BadQuery('the server could not find the requested resource', 404);
    const ETag = tagOf(JSON.stringify(said));
    if (request.headers['if-none-match'] === ETag) response.writeHead(304, { ETag }).end();
    else answer(response, 200, said, { ETag });
  }

  #review({ request, response, path }: Asked, { user, username }: Caller): void {
    const rules = path.endsWith('rulesreviews');
    const kind = path.endsWith('accessreviews') ? 'SelfSubjectAccessReview' : 'SelfSubjectReview';
    if (String(request.headers['content-type'] ?? '').includes('protobuf')) throw new BadQuery('The mock reads reviews as JSON only.', 501);
    bodyOf(request, response, (said) => answer(response, 201, rules ? rulesOf(said as Parameters<typeof rulesOf>[0], user, [...this.cluster.kinds.values()]) : reviewed(said as Parameters<typeof reviewed>[0], kind, user, username, (id) => this.cluster.kinds.has(id) || (this.kinds?.has(id) ?? true))));
  }

  #pastOf({ user, username, token }: Caller, { group = '', resource = '', namespace, name }: Found['named']): { readonly past: MockPast; readonly asker: PastAsker } {
    const { past, users } = this;
    const id = idOf({ group, plural: resource });
    if (!past) throw notFound('NotEnabled', 'the gateway keeps no history');
    if (!past.keeps(id)) throw notFound('NotRecorded', 'no history is kept of this kind');
    if (!maySee(user, id, namespace)) throw new BadQuery(`you may not list ${id} there`, 403);
    const asker = {
      ...{ resource: id, namespace, name, username: username || undefined, logs: user.logs },
      get namespaces() {
        return (users.get(token) ?? user).namespaces;
      },
    };
    return { past, asker };
  }

  #history({ response, url, found }: Asked, caller: Caller): void {
    const { past, asker } = this.#pastOf(caller, found.named);
    if (this.pastAway) throw new BadQuery('the database is away', 503);
    const view = url.searchParams.get('view');
    if (view !== 'spec' && view !== 'log') {
      answer(response, 200, past.list(url.searchParams, asker));
      return;
    }
    const kept = past.keptOf(url.searchParams, asker);
    if (!kept) throw notFound('NotKept', `there is no such job, or its ${view} is not kept`);
    response.writeHead(200, { 'Content-Type': kept.type, 'Cache-Control': 'no-store' });
    response.end(kept.body);
  }

  #inboxOf({ user }: Caller): MockInbox {
    const inbox = user.inbox ?? this.inbox;
    if (!inbox) throw notFound('NotEnabled', 'the gateway keeps no history, and so has no notifications');
    return inbox;
  }

  #viewOf({ user, token }: Caller): InboxView {
    return viewOf(() => this.users.get(token) ?? user);
  }

  #notifications({ request, response, url, path }: Asked, caller: Caller): void {
    const inbox = this.#inboxOf(caller);
    const view = this.#viewOf(caller);
    if (this.pastAway) throw new BadQuery('the database is away', 503);
    if (request.method === 'POST' || request.method === 'PUT') bodyOf(request, response, (said) => changeInbox(inbox, path, said, response, view));
    else answer(response, 200, path.endsWith('/settings') ? settingsOf(inbox) : inboxPage(inbox, url.searchParams, view));
  }

  /** What `/clusters` says of the one that there is. */
  #described({ user }: Caller): object {
    const kinds = [...this.cluster.kinds.values()].filter((kind) => maySee(user, idOf(kind)));
    return { name: 'default', default: true, state: this.fault.staleSince ? 'stale' : 'live', kinds: kinds.map(({ group, version, plural }) => ({ group, version, resource: plural, state: 'live', since: began })) };
  }

  /** Refuses what no object of a kind says, and the mock derives of none. */
  #knowsStatus(id: string, asked: URLSearchParams, status: number): void {
    const numbers = asksNumbers(asked);
    if (numbers) throw new BadQuery(`${numbers}: the mock derives no numbers of pods`, numbers === 'fields' ? 400 : status);
    if (derivesStatus(id) || !asksStatus(asked)) return;
    const [plural = '', ...group] = id.split('.');
    const says = this.cluster.list(plural, group.join('.')).some((object) => (object as { readonly $status?: string }).$status !== '');
    if (!says) throw new BadQuery(`The mock derives no $status of ${id}: put its objects with the one that they are to have.`, status);
  }

  #serves(id: string): boolean {
    return this.kinds?.has(id) ?? true;
  }

  #fallBack(request: IncomingMessage, response: ServerResponse): void {
    if (this.fallback) this.fallback(request, response);
    else refuse(request, response, 404, 'nothing is here');
  }
}

const positions = ['lastEventId', 'last_event_id'];
const began = new Date().toISOString();

/** What a token says of itself, if it looks like one. */
function usernameOf(token: string): string {
  const [, claims = ''] = token.split('.');
  return claims === '' ? '' : String((JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { sub?: unknown }).sub);
}

function tokenOf(request: MockRequest): string {
  return String(request.headers.authorization ?? '').replace(/^Bearer /, '');
}
