import { assert, describe, it } from "@effect/vitest"
import { diagnose, type Platform, thisPlatform } from "../../src/client.ts"

const URL = "ws://127.0.0.1:31870"
const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Safari/537.36"
const SAFARI = "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15"

const publicPage = { protocol: "https:", hostname: "shop.example" }
const localPage = { protocol: "http:", hostname: "localhost" }

const silent = () => Promise.reject(new Error("refused"))
const answering = () => Promise.resolve({})

/** A permission of each kind that a browser may know. */
const permissions = (states: Readonly<Record<string, string>>) => async (name: string) => states[name]

describe("diagnose", () => {
  const names = (title: string, platform: Platform, expected: { reason: string; says: string }, url = URL) =>
    it(title, async () => {
      const { message, reason } = await diagnose(url, platform)
      assert.strictEqual(reason, expected.reason)
      assert.include(message, expected.says)
    })

  names(
    "a bridge that does not run",
    { page: localPage, probe: silent },
    { reason: "unreachable", says: "nothing answers at 127.0.0.1:31870" }
  )
  names(
    "another program at the port",
    { page: localPage, probe: answering },
    { reason: "not_a_bridge", says: "something answers at 127.0.0.1:31870" }
  )
  names("a platform that can find out nothing", {}, { reason: "unreachable", says: "is the bridge running" })

  names(
    "mixed content on the way to another machine",
    { page: publicPage, userAgent: CHROME, probe: answering },
    { reason: "blocked_mixed_content", says: "use wss" },
    "ws://10.0.0.7:31870"
  )
  names(
    "Safari, for which this machine is mixed content too",
    { page: publicPage, userAgent: SAFARI, probe: answering },
    { reason: "blocked_mixed_content", says: "use Chrome, Edge or Firefox" }
  )
  names(
    "no mixed content where the socket is secure",
    { page: publicPage, userAgent: SAFARI, probe: silent },
    { reason: "unreachable", says: "nothing answers at bridge.example" },
    "wss://bridge.example/"
  )

  names(
    "a permission that nobody has given yet",
    { page: publicPage, isSecureContext: true, permission: permissions({ "loopback-network": "prompt" }) },
    { reason: "blocked_by_permission", says: "allow it when the browser asks" }
  )
  names(
    "a permission that was denied, as an older Chrome calls it",
    { page: publicPage, isSecureContext: true, permission: permissions({ "local-network-access": "denied" }) },
    { reason: "blocked_by_permission", says: "allow it in the site settings" }
  )
  names(
    "a page that the browser does not even ask for",
    {
      page: { protocol: "http:", hostname: "shop.example" },
      isSecureContext: false,
      permission: permissions({ "loopback-network": "denied" })
    },
    { reason: "blocked_by_permission", says: "not served over https" }
  )
  names(
    "a frame that its page does not let through",
    {
      page: publicPage,
      allows: (feature) => feature !== "loopback-network",
      permission: permissions({ "loopback-network": "denied" })
    },
    { reason: "blocked_by_policy", says: 'allow="loopback-network"' }
  )
  names(
    "a permission that was given as no hindrance",
    {
      page: publicPage,
      allows: () => true,
      permission: permissions({ "loopback-network": "granted", "local-network-access": "prompt" }),
      probe: silent
    },
    { reason: "unreachable", says: "nothing answers" }
  )
  names(
    "no permission for a page of this machine, which needs none",
    { page: localPage, permission: permissions({ "loopback-network": "prompt" }), probe: silent },
    { reason: "unreachable", says: "nothing answers" }
  )
  names(
    "a Content-Security-Policy, whatever answers there",
    { page: localPage, forbids: async () => true, probe: answering },
    { reason: "blocked_by_policy", says: "add ws://127.0.0.1:31870 to its connect-src" }
  )

  it("asks the platform it runs on, and Node has no hindrances", async () => {
    const { reason } = await diagnose("ws://127.0.0.1:1", thisPlatform())
    assert.strictEqual(reason, "unreachable")
  })
})
