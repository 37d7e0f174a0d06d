// Just enough to put a component into a document and act on it.

import { act, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';

export interface Rendered {
  readonly element: HTMLElement;
  /** By what a person sees or is told. */
  readonly button: (name: string) => HTMLButtonElement;
  readonly type: (input: HTMLInputElement, text: string) => void;
  readonly act: (what: () => void) => void;
  readonly unmount: () => void;
}

export function render(node: ReactNode): Rendered {
  const element = document.createElement('div');
  document.body.append(element);
  const root = createRoot(element);
  act(() => root.render(node));
  return {
    element,
    act: (what) => act(() => what()),
    button: (name) => {
      const button = [...element.querySelectorAll('button')].find(({ textContent }) => textContent?.trim() === name);
      if (!button) throw new Error(`no button is called ${name}: ${element.innerHTML}`);
      return button;
    },
    type: (input, text) => {
      // React overrides the property on the element; the one of its class is the browser's.
      const property = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
      act(() => {
        property?.set?.call(input, text);
        input.dispatchEvent(new Event('input', { bubbles: true }));
      });
    },
    unmount: () => {
      act(() => root.unmount());
      element.remove();
    },
  };
}
