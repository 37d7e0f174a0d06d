// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { Spoken } from './Spoken.tsx';

let root: Root;
let place: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  place = document.body.appendChild(document.createElement('div'));
  root = createRoot(place);
});

afterEach(() => {
  act(() => root.unmount());
  place.remove();
  vi.useRealTimers();
});

const shows = (text: string, asked = 'all'): void => act(() => root.render(<Spoken text={text} asked={asked} />));
const passes = (ms: number): void => act(() => void vi.advanceTimersByTime(ms));
const said = (): string => place.querySelector('[role=status]')?.textContent ?? '';

test('the region is there before it says anything', () => {
  shows('');
  expect(place.querySelector('[role=status]')).not.toBeNull();
  passes(60_000);
  expect(said()).toBe('');
});

test('a count that changes all the time is read out each half minute, the newest then', () => {
  const heard: string[] = [];
  for (let n = 0; n < 600; n++) {
    shows(`${n} found`);
    passes(100);
    if (said() !== '' && said() !== heard.at(-1)) heard.push(said());
  }
  expect(heard.length).toBe(2);
  expect(Number.parseInt(heard[1] ?? '', 10)).toBeGreaterThan(290);
  passes(30_000);
  expect(said()).toBe('599 found');
});

test('the answer to another question is read out at once, though the count goes on changing', () => {
  shows('2,250 found');
  passes(1_000);
  expect(said()).toBe('2,250 found');
  shows('', 'resnet');
  passes(300);
  for (let n = 0; n < 9; n++) {
    shows(`${n} found`, 'resnet');
    passes(100);
  }
  expect(said()).toMatch(/^\d found$/);
});

test('an answer that comes late is read out as it comes', () => {
  shows('', 'resnet');
  passes(9_000);
  shows('7 found', 'resnet');
  passes(1);
  expect(said()).toBe('7 found');
});

test('what was read out, and holds again after it did not, is read out again', () => {
  shows('3 new', '');
  passes(1);
  expect(said()).toBe('3 new');
  shows('', '');
  passes(40_000);
  expect(said()).toBe('');
  shows('3 new', '');
  passes(1);
  expect(said()).toBe('3 new');
});
