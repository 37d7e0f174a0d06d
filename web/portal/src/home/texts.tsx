import type { ReactNode } from 'react';
import { formatNumber } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    title: 'Your jobs',
    loading: 'Loading your jobs…',
    unknown: 'Nothing is known of your own jobs',
    noHistory: 'This gateway keeps no history, so it does not know which jobs are yours.',
    allThere: (link: ReactNode) => <>{link} are there.</>,
    allThereMeanwhile: (link: ReactNode) => <>They are tried again by themselves. {link} are there meanwhile.</>,
    allJobs: 'All jobs',
    older: 'Your history',
    notNow: 'Your jobs cannot be shown at the moment',
    historyAway: 'The history cannot be read at the moment.',
    endedSince: 'Ended since you last looked',
    markAsRead: 'Mark as read',
    showAll: (count: number) => `Show all ${formatNumber(count)}`,
    waiting: 'Waiting',
    noneWaits: 'Nothing of yours waits.',
    running: 'Running',
    noneRuns: 'Nothing of yours runs.',
    endedBefore: 'Ended earlier in the last week',
    endedLately: 'Ended in the last week',
    noneElse: 'Nothing else of yours has ended in the last week.',
    noneEnded: 'Nothing of yours has ended in the last week.',
    more: 'There are more than these.',
    attempt: (count: number) => `attempt ${formatNumber(count)}`,
    progress: (done: number, of: number) => `${formatNumber(done)} of ${formatNumber(of)} done`,
    removed: 'removed',
    ago: (span: string) => `${span} ago`,
    none: 'No job of yours was seen in the last week. Here you will see what runs, what waits and why, and what has ended.',
    whose: (annotation: ReactNode, user: ReactNode) => (
      <>
        A job is yours if its annotation {annotation} is your name{user && <> ({user})</>}, unless your platform has set this up otherwise. To try it:
      </>
    ),
    submitOne: 'How to submit a job of your own',
    yourName: 'YOUR-NAME',
    othersThere: (link: ReactNode) => <>{link} that you may see are there as well.</>,
  },
  'zh-CN': {
    title: '您的作业',
    loading: '正在加载您的作业…',
    unknown: '没有您自己作业的信息',
    noHistory: '此网关不保留历史，因此不知道哪些作业属于您。',
    allThere: (link) => <>请查看{link}。</>,
    allThereMeanwhile: (link) => <>系统会自动重试。在此期间可查看{link}。</>,
    allJobs: '全部作业',
    older: '您的历史',
    notNow: '目前无法显示您的作业',
    historyAway: '目前无法读取历史。',
    endedSince: '上次查看后结束',
    markAsRead: '标为已读',
    showAll: (count) => `显示全部 ${formatNumber(count)} 个`,
    waiting: '等待中',
    noneWaits: '您没有等待中的作业。',
    running: '运行中',
    noneRuns: '您没有运行中的作业。',
    endedBefore: '最近一周更早结束',
    endedLately: '最近一周结束',
    noneElse: '最近一周您没有其他作业结束。',
    noneEnded: '最近一周您没有作业结束。',
    more: '还有更多作业。',
    attempt: (count) => `第 ${formatNumber(count)} 次尝试`,
    progress: (done, of) => `已完成 ${formatNumber(done)}/${formatNumber(of)}`,
    removed: '已移除',
    ago: (span) => `${span}前`,
    none: '最近一周没有您的作业。这里会显示正在运行的作业、正在等待的作业及其原因，以及已结束的作业。',
    whose: (annotation, user) => (
      <>
        注解 {annotation} 的值为您的名称{user && <>（{user}）</>}的作业属于您，除非您的平台另有设置。试一试：
      </>
    ),
    submitOne: '如何提交您自己的作业',
    yourName: 'YOUR-NAME',
    othersThere: (link) => <>您有权查看的{link}也在。</>,
  },
});
