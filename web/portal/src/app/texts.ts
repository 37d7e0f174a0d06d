import { formatNumber, plural } from '../texts/format.ts';
import { byKey, texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    pagesLabel: 'Pages',
    titleIn: (page: string, namespace: string) => `${page} in ${namespace}`,
    unread: (count: number) => plural(count, { other: '({})' }),
    unreadMany: `(${formatNumber(99)}+)`,
    account: 'Account',
    signOut: 'Sign out',
    stillSignedIn: 'You are still signed in: the gateway cannot be reached',
    endsIn: (span: string) => `Sign-in ends in ${span}`,
    endsNow: 'Sign-in ends now',
    userUntil: (user: string, date: string) => `${user}, until ${date}`,
    thisTab: 'this tab only',
    thisTabWhy: 'Other tabs are not signed in: the gateway or the browser keeps no session for your token. Browsers keep one only where the page comes over TLS, or from the same machine.',
    language: 'Language',
    signedOut: 'You have been signed out.',
    expired: 'You have been signed out: the sign-in has expired.',
    notAccepted: 'The gateway does not accept this token.',
    gatewaySays: (said: string) => `The gateway says: ${said}`,
    failed: 'The portal has failed',
    failedWhy: 'This is a mistake in the portal, not in your cluster. You are still signed in.',
    loadAgain: 'Load it again',
    tryAgain: 'Try again',
    notYours: 'You may not see this',
    notYoursWhy: 'Permissions are given by whoever runs the platform. Once you have one, try again.',
    skip: 'Skip to the content',
    search: byKey({ jobs: 'Search jobs', pods: 'Search pods' }),
    empty: {
      jobs: (namespace: string, partly: boolean) => `There are no jobs ${whereIn(namespace, partly)}. They will appear here as they are created.`,
      pods: (namespace: string, partly: boolean) => `There are no pods ${whereIn(namespace, partly)}. They will appear here as they are created.`,
    },
    ended: 'The stream has ended',
    endedWhy: 'The gateway has refused it in a way that trying again by itself would not mend.',
    forbidden: {
      jobs: (namespace: string) => (namespace ? `You may not see jobs in ${namespace}` : 'You may not see jobs of all namespaces'),
      pods: (namespace: string) => (namespace ? `You may not see pods in ${namespace}` : 'You may not see pods of all namespaces'),
    },
    nameRight: 'Is the name right?',
    yourOwn: 'You may well see those of your own.',
    choose: 'Choose a namespace above.',
    enter: 'Enter the name of a namespace above.',
    noNamespace: (namespace: string) => `There is no namespace ${namespace}`,
    noNamespaceWhy: 'If it is created, what is in it appears here. Until then, choose another one above.',
  },
  'zh-CN': {
    pagesLabel: '页面',
    titleIn: (page, namespace) => `${namespace} 的${page}`,
    unread: (count) => plural(count, { other: '({})' }),
    unreadMany: `(${formatNumber(99)}+)`,
    account: '账户',
    signOut: '退出登录',
    stillSignedIn: '您仍处于登录状态：无法连接网关',
    endsIn: (span) => `登录将在 ${span}后失效`,
    endsNow: '登录即将失效',
    userUntil: (user, date) => `${user}，有效期至 ${date}`,
    thisTab: '仅此标签页',
    thisTabWhy: '其他标签页未登录：网关或浏览器没有为您的令牌保留会话。只有页面通过 TLS 加载或来自本机时，浏览器才会保留会话。',
    language: '语言',
    signedOut: '您已退出登录。',
    expired: '您已退出登录：登录已过期。',
    notAccepted: '网关不接受此令牌。',
    gatewaySays: (said) => `网关的答复：${said}`,
    failed: '门户出错',
    failedWhy: '这是门户自身的错误，与您的集群无关。您仍处于登录状态。',
    loadAgain: '重新加载',
    tryAgain: '重试',
    notYours: '您无权查看此内容',
    notYoursWhy: '权限由平台管理员授予。获得权限后请重试。',
    skip: '跳到正文',
    search: { jobs: '搜索作业', pods: '搜索 Pod' },
    empty: {
      jobs: (namespace, partly) => `${whereZh(namespace, partly)}没有作业。新建的作业会显示在这里。`,
      pods: (namespace, partly) => `${whereZh(namespace, partly)}没有 Pod。新建的 Pod 会显示在这里。`,
    },
    ended: '数据流已结束',
    endedWhy: '网关拒绝了该数据流，自动重试也无济于事。',
    forbidden: {
      jobs: (namespace) => (namespace ? `您无权查看 ${namespace} 中的作业` : '您无权查看所有命名空间的作业'),
      pods: (namespace) => (namespace ? `您无权查看 ${namespace} 中的 Pod` : '您无权查看所有命名空间的 Pod'),
    },
    nameRight: '名称是否正确？',
    yourOwn: '您也许可以查看自己命名空间中的内容。',
    choose: '请在上方选择命名空间。',
    enter: '请在上方输入命名空间的名称。',
    noNamespace: (namespace) => `命名空间 ${namespace} 不存在`,
    noNamespaceWhy: '该命名空间创建后，其内容会显示在这里。在此之前，请在上方选择其他命名空间。',
  },
});

function whereIn(namespace: string, partly: boolean): string {
  return namespace ? `in ${namespace}` : partly ? 'in what you may see of the cluster' : 'in the cluster';
}

function whereZh(namespace: string, partly: boolean): string {
  return namespace ? `${namespace} 中` : partly ? '集群中您可见的范围内' : '集群中';
}
