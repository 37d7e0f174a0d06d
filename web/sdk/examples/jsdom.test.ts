// @vitest-environment jsdom
// jsdom has an AbortSignal, Headers and events of its own, which Node's fetch and streams may not take: the testing guide's page runs in it as in happy-dom.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

test('it is jsdom', () => expect(navigator.userAgent).toContain('jsdom'));

describe('testing', () => {
  // Its pages change whenever they are told something, without an act() around it.
  const react = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  beforeAll(() => void (react.IS_REACT_ACT_ENVIRONMENT = false));
  afterAll(() => void (react.IS_REACT_ACT_ENVIRONMENT = true));
  return import('guide:testing/Jobs.test.tsx') as unknown as Promise<void>;
});

describe('one list in four frameworks', () => import('./browser.test.ts') as unknown as Promise<void>);
