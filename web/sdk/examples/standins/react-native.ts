// As much of React Native as the guide needs.
import { createElement, Fragment, type FunctionComponent, type ReactNode } from 'react';

let listener: ((state: string) => void) | undefined;
export const AppState = {
  currentState: 'active',
  addEventListener(_: 'change', added: (state: string) => void) {
    listener = added;
    return { remove: () => void (listener = undefined) };
  },
};
export const change = (state: string): void => listener?.((AppState.currentState = state));

interface ListProps<T> {
  readonly data: readonly T[];
  readonly keyExtractor: (item: T) => string;
  readonly renderItem: (of: { readonly item: T }) => ReactNode;
  readonly ListEmptyComponent: ReactNode;
}
export function FlatList<T>({ data, keyExtractor, renderItem, ListEmptyComponent }: ListProps<T>): ReactNode {
  return data.length === 0 ? ListEmptyComponent : data.map((item) => createElement(Fragment, { key: keyExtractor(item) }, renderItem({ item })));
}
export const Text: FunctionComponent<{ readonly children?: ReactNode }> = ({ children }) => createElement('text', undefined, children);
