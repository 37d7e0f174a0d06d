import { afterEach, expect, test } from 'vitest';
import { Store, type KubeObject } from '@kubecast/sdk';
import { render, type Rendered } from '../../../mock/render.ts';
import { setView } from '../view/view.ts';
import { NamespaceInput, NamespacesOf } from './NamespacePicker.tsx';
import { StateFilter } from './StateFilter.tsx';

let page: Rendered;

afterEach(() => {
  page.unmount();
  setView({ namespace: '', search: '', state: '' });
});

test('states that no row is in take no room, but the one chosen stays, to be let go again', () => {
  page = render(<StateFilter states={['Failed', 'Running', 'Complete']} counts={new Map([['Running', 1_200]])} total={1_200} selected="Failed" loading={false} />);
  expect([...page.element.querySelectorAll('button')].map(({ textContent }) => textContent)).toEqual(['All 1,200', 'Failed 0', 'Running 1,200']);
  const failed = page.button('Failed 0');
  expect(failed.getAttribute('aria-pressed')).toBe('true');
  page.act(() => page.button('Running 1,200').click());
  expect(location.hash).toContain('state=Running');
  page.act(() => failed.click());
  expect(location.hash).not.toContain('state');
});

test('the chosen namespace is in the list even when the cluster no longer has it', () => {
  const store = new Store<{ namespaces: KubeObject }>({
    watches: ['namespaces'],
    seed: { namespaces: ['b', 'a'].map((name) => ({ metadata: { name, uid: name } })) },
  });
  page = render(<NamespacesOf namespaces={store.collection('namespaces')} visible={undefined} selected="gone" />);
  const select = page.element.querySelector('select');
  expect([...(select?.options ?? [])].map(({ text }) => text)).toEqual(['All namespaces', 'a', 'b', 'gone']);
  expect(select?.value).toBe('gone');
});

test('a namespace in which nothing may be seen is no choice, whether namespaces may be listed or not', () => {
  const store = new Store<{ namespaces: KubeObject }>({
    watches: ['namespaces'],
    seed: { namespaces: ['a', 'b', 'c'].map((name) => ({ metadata: { name, uid: name } })) },
  });
  for (const namespaces of [store.collection('namespaces'), undefined]) {
    page = render(<NamespacesOf namespaces={namespaces} visible={['a', 'c']} selected="" />);
    expect([...page.element.querySelectorAll('option')].map(({ text }) => text)).toEqual(['Your 2 namespaces', 'a', 'c']);
    if (namespaces) page.unmount();
  }
});

test('a namespace is typed in peace: nothing is asked for until it is submitted', () => {
  page = render(<NamespaceInput selected="" />);
  const input = page.element.querySelector('input');
  if (!input) throw new Error('no input');
  page.type(input, ' team-a ');
  expect(location.hash).not.toContain('ns=');
  page.act(() => page.button('Show').click());
  expect(location.hash).toContain('ns=team-a');
});
