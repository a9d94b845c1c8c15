import type { ReasonCode } from "./ClientState.ts"

/** Why a socket did not open, as far as the platform lets a page find out. */
export interface Diagnosis {
  readonly reason: ReasonCode
  /** For a person: what is wrong, and the way out. */
  readonly message: string
}

/** What is looked at. Absent is what the platform does not have. */
export interface Platform {
  /** The page's own address. */
  readonly page?: { readonly protocol: string; readonly hostname: string } | undefined
  readonly isSecureContext?: boolean | undefined
  readonly userAgent?: string | undefined
  /** State of a permission, or undefined where the browser does not know it. */
  readonly permission?: ((name: string) => Promise<string | undefined>) | undefined
  /** Whether the page's (and its frame's) policy allows a feature; undefined where the browser does not know it. */
  readonly allows?: ((feature: string) => boolean | undefined) | undefined
  /** Whether the page's Content-Security-Policy forbids a socket to this address. */
  readonly forbids?: ((url: string) => Promise<boolean>) | undefined
  /** Settles when an HTTP server answers at the address within a second or so, and fails otherwise. */
  readonly probe?: ((url: string) => Promise<unknown>) | undefined
}

// Chrome asked for one permission at first, and since 147 for one per kind of network.
const LOOPBACK_FEATURES = ["loopback-network", "local-network-access"]

const PROBE_MILLIS = 1000

const isLoopback = (hostname: string): boolean => /^(localhost|.*\.localhost|\[::1\]|127(\.\d{1,3}){3})$/.test(hostname)

const isWebKitOnly = (userAgent: string): boolean =>
  userAgent.includes("AppleWebKit") && !/Chrome|Chromium|CriOS|FxiOS|EdgiOS/.test(userAgent)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Opens a socket to see whether that is reported as a violation of the page's policy, which it is before the socket fails. */
const violates = (document: Document, url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url)
    const end = (forbidden: boolean) => {
      document.removeEventListener("securitypolicyviolation", reported)
      socket.close()
      resolve(forbidden)
    }
    const reported = ({ blockedURI, effectiveDirective }: SecurityPolicyViolationEvent) => {
      // Browsers report the address with or without its path.
      if (effectiveDirective === "connect-src" && socket.url.startsWith(blockedURI)) end(true)
    }
    document.addEventListener("securitypolicyviolation", reported)
    socket.onopen = () => end(false)
    socket.onerror = () => end(false)
    AbortSignal.timeout(PROBE_MILLIS).onabort = () => end(false)
  })

/** The platform that this code runs on. */
export const thisPlatform = (): Platform => {
  const { document, fetch, isSecureContext, location, navigator }: Partial<typeof globalThis> = globalThis
  return {
    page: location,
    isSecureContext,
    userAgent: navigator?.userAgent,
    permission: async (name) => {
      try {
        const { permissions } = navigator ?? {}
        // Names that the types of the platform do not list yet.
        const status: unknown = permissions && (await Reflect.apply(permissions.query, permissions, [{ name }]))
        return isRecord(status) && typeof status.state === "string" ? status.state : undefined
      } catch {
        return undefined
      }
    },
    allows: (feature) => {
      if (document === undefined) return undefined
      const policy: unknown = Reflect.get(document, "permissionsPolicy") ?? Reflect.get(document, "featurePolicy")
      if (!isRecord(policy) || typeof policy.features !== "function" || typeof policy.allowsFeature !== "function") {
        return undefined
      }
      const known: unknown = Reflect.apply(policy.features, policy, [])
      if (!Array.isArray(known) || !known.includes(feature)) return undefined
      return Reflect.apply(policy.allowsFeature, policy, [feature]) === true
    },
    forbids: document && ((url) => violates(document, url).catch(() => false)),
    probe:
      fetch && ((url) => fetch(url, { mode: "no-cors", cache: "no-store", signal: AbortSignal.timeout(PROBE_MILLIS) }))
  }
}

const permissionMessage = (state: string, host: string, isSecureContext: boolean | undefined): string => {
  const refused = "the browser does not let this page reach the machine's own network"
  if (isSecureContext === false) return `${refused}, since it is not served over https`
  if (state === "denied") return `${refused}: allow it in the site settings (Local network access)`
  return `${refused} until you allow it when the browser asks, or in the site settings (Local network access); if it never asks, nothing answers at ${host}`
}

/**
 * Finds out why the socket to `url` did not open: what the browser forbids by its rules
 * for mixed content, by permission or by policy, and otherwise whether anything answers
 * at the address. Never rejects.
 */
export const diagnose = async (url: string, platform: Platform): Promise<Diagnosis> => {
  const { page } = platform
  const { host, hostname, protocol } = new URL(url)
  const local = isLoopback(hostname)
  if (page?.protocol === "https:" && protocol === "ws:") {
    const blocked = (way: string): Diagnosis => ({
      reason: "blocked_mixed_content",
      message: `the browser does not let a page on https open ${url}: ${way}`
    })
    if (!local) return blocked("use wss, or a bridge on this machine (ws://127.0.0.1)")
    if (isWebKitOnly(platform.userAgent ?? "")) {
      return blocked("open the page over http on localhost, or use Chrome, Edge or Firefox")
    }
  }
  // A page that comes from this machine itself needs no permission for it.
  if (page !== undefined && local && !isLoopback(page.hostname)) {
    for (const feature of LOOPBACK_FEATURES) {
      if (platform.allows?.(feature) === false) {
        return {
          reason: "blocked_by_policy",
          message: `this page may not reach the machine's own network: a frame needs allow="${feature}" on its iframe element`
        }
      }
      const state = await platform.permission?.(feature)
      if (state === undefined) continue
      if (state === "granted") break
      return { reason: "blocked_by_permission", message: permissionMessage(state, host, platform.isSecureContext) }
    }
  }
  if (await platform.forbids?.(url)) {
    return {
      reason: "blocked_by_policy",
      message: `the page's Content-Security-Policy forbids the connection: add ${new URL(url).origin} to its connect-src`
    }
  }
  const answers = platform.probe?.(`${protocol.replace("ws", "http")}//${host}/`).then(
    () => true,
    () => false
  )
  return (await answers)
    ? {
        reason: "not_a_bridge",
        message: `something answers at ${host} but does not take this client: another program, or a bridge that does not admit this page's origin`
      }
    : { reason: "unreachable", message: `nothing answers at ${host}: is the bridge running, and on this port?` }
}
