import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { SignIn } from './SignIn.tsx';

let page: Rendered;
const onToken = vi.fn();
const onCancel = vi.fn();

function show(props: { reason?: string; checking?: boolean; trouble?: string; login?: () => string } = {}): HTMLInputElement {
  page = render(<SignIn reason="" checking={false} trouble="" onToken={onToken} onCancel={onCancel} {...props} />);
  const input = page.element.querySelector('input');
  if (!input) throw new Error('no input');
  return input;
}

afterEach(() => {
  page.unmount();
  vi.clearAllMocks();
});

test('a pasted token is handed on without its line breaks', () => {
  const input = show();
  page.type(input, ' a.b.\n c ');
  page.act(() => page.button('Sign in').click());
  expect(onToken).toHaveBeenCalledWith('a.b.c');
});

test('what no header could carry is said to be no token, until it is changed', () => {
  const input = show();
  page.type(input, 'пароль');
  page.act(() => page.button('Sign in').click());
  expect(onToken).not.toHaveBeenCalled();
  expect(page.element.querySelector('[role=alert]')?.textContent).toContain('This is no token');
  expect(input.getAttribute('aria-invalid')).toBe('true');
  page.type(input, 'p');
  expect(page.element.querySelector('[role=alert]')).toBeNull();
});

test('nothing typed: nothing to send', () => {
  show();
  expect(page.button('Sign in').disabled).toBe(true);
});

test('the reason for being here is an alert that the field is described by', () => {
  const input = show({ reason: 'You have been signed out.' });
  const alert = page.element.querySelector('[role=alert]');
  expect(alert?.textContent).toBe('You have been signed out.');
  expect(input.getAttribute('aria-describedby')).toContain(alert?.id);
});

test('while a token is being tried one can see what the matter is, and give up', () => {
  show({ checking: true, trouble: 'The gateway cannot be reached.' });
  expect(page.element.querySelector('[role=status]')?.textContent).toBe('The gateway cannot be reached.');
  expect(page.button('Signing in…').disabled).toBe(true);
  page.act(() => page.button('Cancel').click());
  expect(onCancel).toHaveBeenCalledOnce();
});

test('it says how to get a token', () => {
  show();
  expect(page.element.querySelector('code')?.textContent).toBe('gateway token --key FILE --user NAME --group GROUP');
});

test('where one can sign in without a token, that comes first; the address is that of the view at the click', () => {
  let view = 'jobs';
  show({ login: () => `/auth/login?returnTo=${view}` });
  const link = page.element.querySelector('a');
  expect(link?.textContent).toBe('Sign in');
  view = 'pods';
  page.act(() => {
    link?.addEventListener('click', (event) => event.preventDefault());
    link?.click();
  });
  expect(link?.getAttribute('href')).toBe('/auth/login?returnTo=pods');
  expect(page.button('Use the token').disabled).toBe(true);
  expect(document.activeElement).not.toBe(page.element.querySelector('input'));
});
