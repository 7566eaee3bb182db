// Order of the states of a port, from the best to the worst.

export const BAD = ["up", "absent", "disabled", "blocked", "isolated", "down"];
export const worse = (a, b) => (BAD.indexOf(a) >= BAD.indexOf(b) ? a : b);
