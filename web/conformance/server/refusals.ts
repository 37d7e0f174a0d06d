// What is no stream, and says so.

import { check, same } from '../case.ts';
import { serverCase, type Trial } from './trial.ts';

const stream = { headers: { Accept: 'text/event-stream' } };

async function refused(trial: Trial, path: string, statuses: readonly number[], init: RequestInit = stream): Promise<Response> {
  const response = await trial.ask(path, init);
  const text = await response.text();
  check(statuses.includes(response.status), `${init.method ?? 'GET'} ${path} is answered with ${response.status}, and not ${statuses.join(' or ')}`);
  check((response.headers.get('Content-Type') ?? '').includes('json'), `a refusal is JSON, and not ${response.headers.get('Content-Type')}`);
  check(!/^\s*at |\.go:\d/m.test(text), `a refusal says nothing of the inside: ${text}`);
  return response;
}

export const refusalCases = [
  serverCase('nobody', 'Who is nobody is asked for credentials, with a status that a client can tell from all others.', async ({ subject, room }) => {
    const response = await (subject.fetch ?? globalThis.fetch)(subject.url + room.path, { headers: { Accept: 'text/event-stream', Authorization: 'Bearer none' } });
    await response.text();
    same(response.status, 401, 'the status');
    check(response.headers.has('WWW-Authenticate'), 'WWW-Authenticate is there');
  }),

  serverCase('no-such-kind', 'What does not exist is no stream that stays empty for ever.', async (trial) => {
    const unknown = [403, 404]; // to who may not see it, it is not told whether it exists
    await refused(trial, '/apis/no.such.group/v1/nothings', unknown);
    await refused(trial, `/stream?one=${encodeURIComponent('/apis/no.such.group/v1/nothings')}`, unknown);
  }, 'queries'),

  serverCase('head-of-a-stream', 'Whoever asks for the head alone, as a client that looks which of its watches was refused, is not left hanging.', async (trial) => {
    const response = await trial.ask(trial.room.path, { ...stream, method: 'HEAD' });
    same(await response.text(), '', 'the body');
    same(response.status, 200, 'the status');
  }),

  serverCase('reading-only', 'Nothing is written through the gateway.', async (trial) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const init = { method, headers: { 'Content-Type': 'application/json' }, ...(method === 'DELETE' ? {} : { body: '{}' }) };
      const response = await trial.ask(trial.room.path, init);
      await response.text();
      same(response.status, 405, method);
    }
  }),

  serverCase('unknown-parameter', 'A parameter that was misspelled is refused, or it would show more than was meant.', async (trial) => {
    await refused(trial, `${trial.room.path}?lableSelector=a%3Db`, [400]);
    await refused(trial, `/stream?limit=${encodeURIComponent(trial.room.path)}`, [400]);
  }, 'queries'),
];
