import { watched } from "./activity.js"
import { connect } from "./connection.js"
import { showTodos } from "./list.js"
import { play } from "./play.js"
import { makeTodos } from "./todos.js"
import { makeTools } from "./tools.js"

const { bridge, namespace, plays } = await (await fetch("settings")).json()

const todos = makeTodos(localStorage)
showTodos(todos)

const tools = makeTools(todos).map(watched)
const { client, key } = connect({ bridge, namespace, tools })
if (plays) play({ client, key, namespace, tools })
