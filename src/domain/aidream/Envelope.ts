/**
 * The capability envelope: what a client is at the moment of a request (parts
 * 2.7 and 4).
 *
 * Known keys are checked strictly, unknown keys are kept: a newer client may
 * send flags that only a tool's handler understands.
 */
import { Schema, SchemaGetter } from "effect"
import { fallback, JsonObject, maybe } from "./Absent.ts"
import { ToolSpec } from "./ToolSpec.ts"

const rest = [Schema.Record(Schema.String, Schema.Unknown)] as const

/** The capability of a browser that can act on tabs. */
export const BROWSER_DOM = "browser-dom"
/** The capability of a desktop engine. */
export const DESKTOP_NATIVE = "desktop-native"

/** `client.state["browser-dom"]` (part 4.2). */
export const BrowserDomState = Schema.StructWithRest(
  Schema.Struct({
    current_url: maybe(Schema.String),
    current_tab_id: maybe(Schema.Int),
    current_window_id: maybe(Schema.Int),
    page_title: maybe(Schema.String),
    page_lang: maybe(Schema.String),
    tab_status: maybe(Schema.Literals(["loading", "complete"])),
    surface: Schema.Literals(["assistant", "pilot"]),
    is_admin: Schema.Boolean,
    is_guest: fallback(Schema.Boolean, () => false),
    permission_mode: Schema.Literals(["ask", "act"]),
    desktop_bridge: Schema.Literals(["native", "http", "none"]),
    onbox_ai_available: Schema.Boolean,
    optional_permissions_granted: fallback(Schema.Array(Schema.String), () => []),
    open_tab_count: maybe(Schema.Int),
    extension_version: fallback(Schema.String, () => ""),
    extension_id: fallback(Schema.String, () => ""),
    loaded_categories: fallback(Schema.Array(Schema.String), () => []),
    bound_compute_target_kind: maybe(Schema.Literals(["ec2", "hosted", "local-pc"])),
    bound_compute_target_id: maybe(Schema.String)
  }),
  rest
)
export type BrowserDomState = typeof BrowserDomState.Type

const Platform = Schema.Literals(["darwin", "win32", "linux"])

/** `client.state["desktop-native"]` (part 4.3). `windows` is read as `win32`. */
export const DesktopNativeState = Schema.StructWithRest(
  Schema.Struct({
    platform: Schema.Union([
      Platform,
      Schema.Literal("windows").pipe(
        Schema.decodeTo(Schema.Literal("win32"), {
          decode: SchemaGetter.transform(() => "win32" as const),
          encode: SchemaGetter.transform(() => "windows" as const)
        })
      )
    ]),
    engine_version: Schema.String,
    instance_id: Schema.String,
    tunnel_state: Schema.Literals(["active", "none"]),
    permissions_granted: fallback(Schema.Array(Schema.String), () => []),
    loaded_categories: fallback(Schema.Array(Schema.String), () => []),
    target_instance_id: maybe(Schema.String),
    selected_target_instance_id: maybe(Schema.String)
  }),
  rest
)
export type DesktopNativeState = typeof DesktopNativeState.Type

export const ApplyPolicy = Schema.Literals(["auto", "ask", "off"])

/** What a request says about the client that sends it. */
export const ClientContext = Schema.Struct({
  capabilities: fallback(Schema.Array(Schema.NonEmptyString), () => []),
  /** One object per stateful capability; checked by the capability's own schema. */
  state: fallback(Schema.Record(Schema.String, JsonObject), () => ({})),
  surface: maybe(Schema.String),
  amendments: maybe(
    Schema.Struct({
      add: fallback(Schema.Array(ToolSpec), () => []),
      remove: fallback(Schema.Array(Schema.String), () => [])
    })
  ),
  mcp: fallback(Schema.Array(Schema.String), () => []),
  apply_policy: maybe(ApplyPolicy)
})
export type ClientContext = typeof ClientContext.Type
