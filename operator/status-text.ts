// How the words of others (errors, the kubelet, the API server) stand in messages: some end with a full stop and some do not.

/** As a sentence that another may follow. */
export function asSentence(text: string): string {
  const words = text.trimEnd().replace(/\.+$/, '')
  return /[!?…]$/.test(words) ? words : `${words}.`
}
