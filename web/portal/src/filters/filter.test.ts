import { expect, test } from 'vitest';
import { countByState, matcher } from './filter.ts';

const row = (name: string, namespace: string, state = 'Running') => ({ uid: name, name, namespace, state, created: 0 });
const rows = [row('train-bert', 'team-nlp'), row('Train-resnet', 'team-vision', 'Failed'), row('eval', 'team-nlp')];
const found = (search: string) => rows.filter(matcher(search, ({ name, namespace }) => [name, namespace])).map(({ name }) => name);

test.each([
  ['', ['train-bert', 'Train-resnet', 'eval']],
  ['  ', ['train-bert', 'Train-resnet', 'eval']],
  ['TRAIN', ['train-bert', 'Train-resnet']],
  ['nlp train', ['train-bert']],
  ['bert team-vision', []],
  ['bertteam', []], // texts do not run into each other
  ['.*', []], // a search is no expression
])('%j finds %j', (search, want) => {
  expect(found(search)).toEqual(want);
});

test('counts by state', () => {
  expect([...countByState(rows)]).toEqual([['Running', 2], ['Failed', 1]]);
});
