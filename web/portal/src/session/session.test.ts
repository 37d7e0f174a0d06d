import { expect, test, vi } from 'vitest';
import { claimsOf, cleanToken, storedToken, storeToken, takeTokenFromAddress } from './session.ts';

const address = (hash: string) => ({ hash, pathname: '/', search: '?x=1' });

test('a token in the fragment is taken, and the address is clean at once', () => {
  const replace = vi.fn();
  expect(takeTokenFromAddress(address('#token=a.b-c.d_e'), replace)).toBe('a.b-c.d_e');
  expect(replace).toHaveBeenCalledWith('/?x=1');
});

test('a fragment that is a view is left alone', () => {
  const replace = vi.fn();
  expect(takeTokenFromAddress(address('#pods?ns=a'), replace)).toBeUndefined();
  expect(takeTokenFromAddress(address(''), replace)).toBeUndefined();
  expect(replace).not.toHaveBeenCalled();
});

test('even a useless token leaves the address', () => {
  const replace = vi.fn();
  expect(takeTokenFromAddress(address('#token='), replace)).toBeUndefined();
  expect(replace).toHaveBeenCalledOnce();
});

test.each([
  ['  abc.def.ghi\n', 'abc.def.ghi'],
  ['Bearer abc.def.ghi', 'abc.def.ghi'],
  ['abc.\ndef.\r\nghi', 'abc.def.ghi'],
  ['   ', undefined],
  ['Bearer ', undefined],
  ['ключ', undefined], // fetch would throw at such a header, for ever
])('pasted %j is %j', (pasted, want) => {
  expect(cleanToken(pasted)).toBe(want);
});

test('claims are read as UTF-8 in base64url, and nonsense says nothing', () => {
  const payload = Buffer.from(JSON.stringify({ sub: 'jürgen?>', exp: 1_900_000_000 })).toString('base64url');
  expect(claimsOf(`h.${payload}.s`)).toEqual({ user: 'jürgen?>', expiresAt: 1_900_000_000_000 });
  for (const token of ['', 'x', 'a.b.c', `h.${Buffer.from('null').toString('base64url')}.s`]) {
    expect(claimsOf(token)).toEqual({ user: '', expiresAt: undefined });
  }
});

test('signing out leaves nothing in the storage', () => {
  storeToken('t');
  expect(storedToken()).toBe('t');
  storeToken(undefined);
  expect(storedToken()).toBeUndefined();
  expect(sessionStorage.length).toBe(0);
});
