// Search in a manual that is opened from disk: browsers start no Worker from file:, so one runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => {
        const message = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => { this.dispatchEvent(message); this.onmessage?.(message); });
      };
      const script = inside.document.createElement("script");
      this.loaded = new Promise(done => { script.onload = done; });
      script.onerror = error => this.onerror?.(error);
      script.src = new URL(url, location.href);
      inside.document.body.append(script);
    }
    postMessage(data) {
      const inside = this.frame.contentWindow;
      const message = new inside.MessageEvent("message", { data: structuredClone(data) });
      this.loaded.then(() => setTimeout(() => inside.dispatchEvent(message)));
    }
    terminate() { this.frame.remove(); }
  };
}
