/** The element with this id. */
export const element = (id) => document.getElementById(id)

/** A new element with these properties and children. */
export const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}
