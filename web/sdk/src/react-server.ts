'use client';

// What components of a server import by the condition `react-server`: the same, as a client's. The directive stands here alone, since bundlers of
// pages without a server complain of one. Each name is given, for such a module may not export all of another one.

export {
  KubecastProvider,
  useAccess,
  useConnection,
  useCount,
  useFollow,
  useHistory,
  useInfiniteList,
  useKubecast,
  useLivePage,
  useLogs,
  useMe,
  useNotifications,
  useObject,
  useQueue,
  useQueues,
  useSuspenseAccess,
  useSuspenseFollow,
  useSuspenseHistory,
  useSuspenseInfiniteList,
  useSuspenseMe,
  useSuspenseNotifications,
  useSuspenseObject,
  useSuspenseQueue,
  useSuspenseQueues,
  useSuspenseTransitions,
  useSuspenseWatch,
  useTransitions,
  useWatch,
} from './react.ts';
