import { expect, test } from 'vitest';
import { formatView, linkTo, linkToJob, parseView, setView } from './view.ts';

test.each(['#jobs', '#pods?ns=team-a&q=a+%26+b%3F&state=Failed&sort=-name', '#jobs?sort=state', '#jobs/team-a/train', '#jobs/a/b%20c?q=x&tab=yaml'])('%s survives the round trip', (hash) => {
  expect(formatView(parseView(hash))).toBe(hash);
});

test.each(['', '#', '#nowhere', '#?x=1', '#mine/team-a/train'])("%j is the user's own page", (hash) => {
  expect(formatView(parseView(hash))).toBe('#mine');
});

test.each(['#jobs?', '#jobs/', '#jobs/team-a', '#jobs//train', '#jobs?tab=yaml'])('%j is the page of jobs, newest first', (hash) => {
  expect(formatView(parseView(hash))).toBe('#jobs');
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
  expect(linkToJob('team-b', 'train', parseView('#pods?ns=team-a&q=train-0&state=Failed'))).toBe('#jobs/team-b/train?ns=team-a');
  expect(parseView('#jobs/%/%zz').object).toEqual({ namespace: '%', name: '%zz' });
});

test('changing the view makes no step in the history', () => {
  const before = history.length;
  setView({ page: 'jobs', search: 'x' });
  setView({ namespace: 'n' });
  expect(location.hash).toBe('#jobs?ns=n&q=x');
  expect(history.length).toBe(before);
});
