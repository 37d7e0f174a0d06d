import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './theme/tokens.css';
import { App } from './app/App.tsx';
import { Failure } from './app/Failure.tsx';
import './app/app.css';
import { loadPage } from './pages/Route.tsx';
import { firstSession } from './signin/useSignIn.ts';
import { untilSaid } from './state/said.ts';
import { language } from './texts/language.ts';
import { parseView } from './view/view.ts';

document.documentElement.lang = language;
const root = document.getElementById('root');
if (!root) throw new Error('index.html has no root');
loadPage(parseView(location.hash));
const start = (): void =>
  createRoot(root).render(
    <StrictMode>
      <Failure>
        <App first={firstSession()} />
      </Failure>
    </StrictMode>,
  );
if (untilSaid) void untilSaid.then(start);
else start();
