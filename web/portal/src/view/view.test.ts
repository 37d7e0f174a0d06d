import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { formatView, linkTo, linkToJob, linkToKind, linkToObject, linkToQueue, linkToRun, parseView, setView } from './view.ts';

test.each(['#jobs', '#pods?ns=team-a&q=a+%26+b%3F&state=Failed&sort=-name', '#jobs?sort=state', '#jobs?sort=state&cols=state+age', '#kinds/nodes?cols=internal-ip', '#jobs/team-a/train', '#jobs/a/b%20c?q=x&tab=yaml', '#jobs/a/b@0f0e-1?tab=yaml', '#jobs/a/b@0f0e-1?tab=compare&compare=1f%2F2', '#kinds/roles.rbac.authorization.k8s.io/a/b%40c', '#pods/a/b', '#history?ns=a&state=Failed&owner=me&queue=gold&cause=OOMKilled&since=24h', '#pods/a/b?line=b%2Fmain%2F2026-01-31T09%3A00%3A00Z&log=side', '#overview?since=1h', '#overview?ns=team-a&tab=wall', '#kinds', '#kinds/deployments.apps?q=x', '#kinds/deployments.apps/a/b?tab=yaml', '#kinds/nodes/node-1', '#jobs/a/b@0f0e-1?cluster=west', '#history?cluster=west&only=cluster&ns=a'])('%s survives the round trip', (hash) => {
  expect(formatView(parseView(hash))).toBe(hash);
});

test.each(['', '#', '#nowhere', '#?x=1', '#mine/team-a/train'])("%j is the user's own page", (hash) => {
  expect(formatView(parseView(hash))).toBe('#mine');
});

test.each(['#jobs?', '#jobs/', '#jobs/team-a', '#jobs//train', '#jobs?tab=yaml'])('%j is the page of jobs, newest first', (hash) => {
  expect(formatView(parseView(hash))).toBe('#jobs');
});

test('an address that leads nowhere is no page', () => {
  expect(['#nonsense', '#nonsense/a?ns=b', '#jobsx'].map((hash) => parseView(hash).unknown)).toEqual([true, true, true]);
  expect(['', '#', '#mine', '#jobs/a/b', '#kinds/x', '#?ns=a'].map((hash) => parseView(hash).unknown)).toEqual(Array(6).fill(undefined));
});

test('a link of old to jobs that are complete shows those that have succeeded; of other kinds the word is their own', () => {
  expect(formatView(parseView('#jobs?ns=a&state=Complete'))).toBe('#jobs?ns=a&state=Succeeded');
  expect(parseView('#history?state=Complete').state).toBe('Succeeded');
  expect(parseView('#kinds/workflows.example.org?state=Complete').state).toBe('Complete');
});

test('whatever a page leads to is of its cluster, and shows it beside the others again', () => {
  const view = parseView('#history?cluster=west&only=cluster&ns=a');
  const links = [linkTo('jobs', view), linkToJob('a', 'b', view), linkToObject('nodes', '', 'n', view), linkToKind('nodes', view), linkToRun({ namespace: 'a', name: 'b', uid: 'c' }, view), linkToQueue('a', 'q', view)];
  expect(links.map((link) => [parseView(link).cluster, parseView(link).only])).toEqual(Array(6).fill(['west', '']));
});

test('going to the other page keeps namespace and search, not what only this page has', () => {
  const view = parseView('#jobs?ns=team-a&q=train&state=Retrying&sort=queue');
  expect(linkTo('pods', view)).toBe('#pods?ns=team-a&q=train');
  expect(linkTo('jobs', view)).toBe(formatView(view));
});

test("a job's page keeps what its table shows, for the way back, and takes of another table the namespace only", () => {
  const view = parseView('#jobs?ns=team-a&q=train&sort=queue');
  const there = linkToJob('team-b', 'train', view);
  expect(there).toBe('#jobs/team-b/train?ns=team-a&q=train&sort=queue');
  expect(linkTo('jobs', parseView(`${there}&tab=yaml`))).toBe(formatView(view));
  expect(linkTo('pods', parseView(there))).toBe('#pods?ns=team-a&q=train');
  expect(linkToJob('team-b', 'train', parseView('#jobs/team-b/test?line=a%2Fb%2Fc&log=side'))).toBe('#jobs/team-b/train');
  expect(linkToJob('team-b', 'train', parseView('#pods?ns=team-a&q=train-0&state=Failed'))).toBe('#jobs/team-b/train?ns=team-a');
  expect(parseView('#jobs/%/%zz').object).toEqual({ namespace: '%', name: '%zz' });
});

test('a link to a run names the run, and the way back from it is that of any job', () => {
  const view = parseView('#history?ns=team-a&q=train');
  const there = linkToRun({ namespace: 'team-b', name: 'train', uid: 'u-1' }, view);
  expect(there).toBe('#jobs/team-b/train@u-1?ns=team-a');
  expect(parseView(there).object).toEqual({ namespace: 'team-b', name: 'train', uid: 'u-1' });
  expect(linkTo('jobs', parseView(there))).toBe('#jobs?ns=team-a');
  expect(linkToJob('team-b', 'train', parseView(there))).toBe('#jobs/team-b/train?ns=team-a');
});

test("what is no job and no pod has its page among the kinds, by itself where it is in no namespace", () => {
  const view = parseView('#kinds/widgets.example.org?ns=a&q=x');
  expect(linkToObject('widgets.example.org', 'a', 'w', view)).toBe('#kinds/widgets.example.org/a/w?ns=a&q=x');
  expect(linkToObject('nodes', '', 'node-1', view)).toBe('#kinds/nodes/node-1?ns=a');
  expect(linkToObject('pods', 'a', 'p', view)).toBe('#pods/a/p?ns=a');
  expect(linkToKind('widgets.example.org', parseView('#kinds/widgets.example.org/a/w?q=x&tab=yaml'))).toBe('#kinds/widgets.example.org?q=x');
  expect(linkToKind('jobs.batch', view)).toBe('#jobs?ns=a&q=x');
  expect(linkTo('kinds', view)).toBe('#kinds?ns=a&q=x');
});

describe('steps', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
    location.hash = '#jobs';
  });
  afterEach(() => vi.useRealTimers());

  test('each filter is a step that Back undoes, a search one as a whole', () => {
    const before = history.length;
    setView({ namespace: 'n' });
    vi.advanceTimersByTime(60_000);
    for (const search of ['x', 'xy', 'xyz']) {
      setView({ search });
      vi.advanceTimersByTime(60_000);
    }
    expect(location.hash).toBe('#jobs?ns=n&q=xyz');
    expect(history.length - before).toBe(2);
  });

  test('whoever runs through the choices of a filter goes back to where they began', () => {
    const before = history.length;
    for (const namespace of ['a', 'b', 'c']) {
      setView({ namespace });
      vi.advanceTimersByTime(100);
    }
    setView({ state: 'Failed' });
    expect(history.length - before).toBe(2);
  });

  test('the order, and what is shown of an object, is no step', () => {
    const before = history.length;
    setView({ sort: { column: 'name', descending: false } });
    setView({ tab: 'yaml' });
    setView({ page: 'jobs' });
    expect(history.length).toBe(before);
    expect(location.hash).toBe('#jobs?sort=name');
  });
});

test('what a browser takes out of a path is no cluster', () => {
  expect(['..', '.', '%2E%2E', '...', 'west'].map((name) => parseView(`#mine?cluster=${name}`).cluster)).toEqual(['', '', '', '...', 'west']);
});
