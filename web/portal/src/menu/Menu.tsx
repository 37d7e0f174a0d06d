// A button with what it opens below it.

import { useEffect, useRef, useState, type ReactNode } from 'react';
import './menu.css';

interface MenuProps {
  readonly label: ReactNode;
  /** What is in it, while it is open. A click on what has `data-closes` closes it. */
  readonly children: ReactNode;
}

/** Closed by Escape, and when somebody points at, or goes to, something else. */
export function Menu({ label, children }: MenuProps): ReactNode {
  const menu = useRef<HTMLDetailsElement>(null);
  const [open, setOpen] = useState(false);
  const close = (): void => {
    if (menu.current) menu.current.open = false;
  };
  useEffect(() => {
    const leave = (event: Event): void => {
      if (menu.current?.open && !(event.target instanceof Node && menu.current.contains(event.target))) menu.current.open = false;
    };
    document.addEventListener('pointerdown', leave);
    document.addEventListener('focusin', leave);
    return () => {
      document.removeEventListener('pointerdown', leave);
      document.removeEventListener('focusin', leave);
    };
  }, []);
  return (
    <details className="menu" ref={menu} onToggle={() => setOpen(menu.current?.open === true)} onKeyDown={(event) => {
      if (event.key !== 'Escape' || !menu.current?.open) return;
      close();
      menu.current.querySelector('summary')?.focus();
    }}>
      <summary className="button">{label}</summary>
      <div className="menu-body" onClick={({ target }) => target instanceof Element && target.closest('[data-closes]') && close()}>
        {open && children}
      </div>
    </details>
  );
}
