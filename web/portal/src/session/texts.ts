import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    otherTab: 'You have signed out in another tab.',
    notRenewed: 'Your session cannot be renewed at the moment. Trying again…',
    notReached: 'The gateway cannot be reached at the moment. Trying again…',
  },
  'zh-CN': {
    otherTab: '您已在另一个标签页中退出登录。',
    notRenewed: '目前无法续期您的会话。正在重试…',
    notReached: '目前无法连接网关。正在重试…',
  },
});
