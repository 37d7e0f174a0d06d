import { expect, test } from 'vitest';
import { formatView, linkTo, parseView, setView } from './view.ts';

test.each(['#jobs', '#pods?ns=team-a&q=a+%26+b%3F&state=Failed&sort=-name', '#jobs?sort=state'])('%s survives the round trip', (hash) => {
  expect(formatView(parseView(hash))).toBe(hash);
});

test.each(['', '#', '#nowhere', '#jobs?', '#?x=1'])('%j is the page of jobs, newest first', (hash) => {
  expect(formatView(parseView(hash))).toBe('#jobs');
});

test('going to the other page keeps namespace and search, not what only this page has', () => {
  const view = parseView('#jobs?ns=team-a&q=train&state=Retrying&sort=queue');
  expect(linkTo('pods', view)).toBe('#pods?ns=team-a&q=train');
  expect(linkTo('jobs', view)).toBe(formatView(view));
});

test('changing the view makes no step in the history', () => {
  const before = history.length;
  setView({ search: 'x' });
  setView({ namespace: 'n' });
  expect(location.hash).toBe('#jobs?ns=n&q=x');
  expect(history.length).toBe(before);
});
