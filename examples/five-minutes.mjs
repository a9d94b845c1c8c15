const todos = ["Read the README"]

const tools = {
  list: {
    description: "List everything on the todo list.",
    parametersSchema: { type: "object" },
    readOnly: true,
    run: () => todos
  },
  add: {
    description: "Put something on the todo list.",
    parametersSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
    run: ({ title }) => todos.push(title)
  }
}

const socket = new WebSocket(process.env.BRIDGE_URL ?? "ws://127.0.0.1:31870")
const send = (frame) => socket.send(JSON.stringify(frame))

socket.onopen = () => send({ type: "hello", protocol: 5, key: process.env.TODO_KEY })
socket.onclose = () => console.log("the bridge is gone")
socket.onmessage = async ({ data }) => {
  const frame = JSON.parse(data)
  if (frame.type === "welcome") {
    send({ type: "register", tools: Object.entries(tools).map(([name, { run, ...tool }]) => ({ name, ...tool })) })
  } else if (frame.type === "ping") {
    send({ type: "pong" })
  } else if (frame.type === "call") {
    const { callId, name, args } = frame
    try {
      send({ type: "callResult", callId, ok: true, result: await tools[name].run(args) })
    } catch (error) {
      send({ type: "callResult", callId, ok: false, error: { code: "internal", message: String(error) } })
    }
  } else {
    console.log(frame)
  }
}
