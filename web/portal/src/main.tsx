import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/App.tsx';
import { Failure } from './app/Failure.tsx';
import './app/app.css';
import { firstSession } from './signin/useSignIn.ts';
import { language } from './texts/language.ts';

document.documentElement.lang = language;
const root = document.getElementById('root');
if (!root) throw new Error('index.html has no root');
createRoot(root).render(
  <StrictMode>
    <Failure>
      <App first={firstSession()} />
    </Failure>
  </StrictMode>,
);
